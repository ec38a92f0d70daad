package dunlin.crash;

/** Which broker runs, as far as is known; one has to, before anybody asks. */
final class Lives {
    /** So long a worker that lost its connection waits for the next life before it tries again. */
    private static final long PATIENCE_MILLIS = 100;

    private Broker current;
    private boolean stopping;

    /** A broker is ready. */
    synchronized void begin(Broker broker) {
        current = broker;
        notifyAll();
    }

    /** The load is to end. */
    synchronized void stop() {
        stopping = true;
        notifyAll();
    }

    /** The broker to connect to after {@code last} went or failed; null at the end of the load. */
    synchronized Broker after(Broker last) throws InterruptedException {
        assert current != null : "the load begins with a broker";
        if (!stopping && current == last) {
            wait(PATIENCE_MILLIS);
        }
        return stopping ? null : current;
    }

    /** Whether a connection to this one is still worth working on. */
    synchronized boolean goesOn(Broker broker) {
        return !stopping && current == broker;
    }
}
