package dunlin.bench;

/** From the first send or the consumer's beginning on, without what leads there. */
record Span(int brokerPid, long begun, Processors before) {
    /** With 0 for a broker that is in this very process. */
    static Span begin(int brokerPid) {
        Processors before = Processors.now(brokerPid);
        return new Span(brokerPid, System.nanoTime(), before);
    }

    long nanos() {
        return System.nanoTime() - begun;
    }

    /** How long it was until {@code end}, and what the processors have done until now. */
    Line put(Line line, long end) {
        Processors used = Processors.now(brokerPid).since(before);
        return line.put("nanos", end - begun)
                .put("broker_cpu_nanos", used.broker())
                .put("client_cpu_nanos", used.client());
    }
}
