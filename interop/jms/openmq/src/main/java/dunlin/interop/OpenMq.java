package dunlin.interop;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Open MQ on loopback ports, with its store in the folder given: {@code OpenMq FOLDER POLICY}. Prints
 * where it listens as Dunlin does. The policy is {@code always}, or {@code never}, its default: it
 * leaves it to the operating system when something is flushed.
 */
public final class OpenMq {
    private static final int LOOK_MILLIS = 20;

    private OpenMq() {}

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createDirectories(Path.of(arguments[0]).toAbsolutePath());
        boolean syncs = switch (arguments[1]) {
            case "always" -> true;
            case "never" -> false;
            default -> throw new IllegalArgumentException(arguments[1] + "? always or never");
        };
        URI classes = OpenMq.class.getProtectionDomain().getCodeSource().getLocation().toURI();
        Path home = Path.of(classes).resolveSibling("mq");
        int mapper = freePort();
        int port = freePort();
        System.setProperty("imq.home", home.toString());
        System.setProperty("imq.libhome", home.resolve("lib").toString());
        System.setProperty("imq.etchome", home.resolve("etc").toString());
        System.setProperty("imq.varhome", folder.toString());
        String[] words = {
            "-silent", "-port", Integer.toString(mapper),
            "-Dimq.hostname=127.0.0.1",
            "-Dimq.jms.tcp.port=" + port,
            "-Dimq.persist.file.sync.enabled=" + syncs,
        };
        Class.forName("com.sun.messaging.jmq.jmsserver.Broker")
                .getMethod("main", String[].class).invoke(null, (Object) words);
        while (!listens(port)) {
            Thread.sleep(LOOK_MILLIS);
        }
        // Clients ask the mapper for the other one.
        System.out.println("listening mq 127.0.0.1:" + mapper);
        System.out.println("ready");
    }

    private static boolean listens(int port) {
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.getLocalPort() != port;
        } catch (IOException error) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
