package dunlin.interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A way to the broker that can be cut, as when a client's machine dies. */
final class Proxy implements AutoCloseable {
    private final ServerSocket listener;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();

    Proxy() throws IOException {
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    /** Resets both ends of every connection: nobody says goodbye. */
    void cut() throws IOException {
        // All before any is closed: who copies from one then closes the other.
        for (Socket socket : sockets) {
            resetWhenClosed(socket);
        }
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    /** A reset, not an orderly end. Its connection may be just ending by itself. */
    private static void resetWhenClosed(Socket socket) throws SocketException {
        try {
            socket.setSoLinger(true, 0);
        } catch (SocketException error) {
            if (!socket.isClosed()) {
                throw error;
            }
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            Socket broker = new Socket(Broker.host(), Broker.port());
            sockets.addAll(List.of(client, broker));
            start(() -> copy(client, broker));
            start(() -> copy(broker, client));
        }
    }

    private static void copy(Socket source, Socket target) throws IOException {
        try (source; target) {
            target.setTcpNoDelay(true);
            InputStream from = source.getInputStream();
            OutputStream to = target.getOutputStream();
            byte[] bytes = new byte[65_536];
            for (int count = from.read(bytes); count >= 0; count = from.read(bytes)) {
                to.write(bytes, 0, count);
            }
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException error) {
                // The end of every connection that was cut. Any other one a test notices itself.
                if (!listener.isClosed() && sockets.isEmpty()) {
                    throw new UncheckedIOException(error);
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
