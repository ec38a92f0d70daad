package dunlin.interop;

import fr.dyade.aaa.agent.AgentServer;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * JORAM on a loopback port, with its log in the folder given: {@code Joram FOLDER [POLICY]}. Prints
 * where it listens as Dunlin does. The policy is {@code always}, or {@code none}: nothing kept.
 */
public final class Joram {
    private static final String SERVERS = """
            <?xml version="1.0"?>
            <config>
              <property name="Transaction" value="%s"/>
              <property name="Transaction.SyncOnWrite" value="true"/>
              <server id="0" name="S0" hostname="127.0.0.1">
                <service class="org.objectweb.joram.mom.proxies.ConnectionManager"
                         args="root root"/>
                <service class="org.objectweb.joram.mom.proxies.tcp.TcpProxyService"
                         args="%d 127.0.0.1"/>
              </server>
            </config>
            """;

    private Joram() {}

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createDirectories(Path.of(arguments[0]).toAbsolutePath());
        Policy policy = arguments.length > 1 ? Policy.of(arguments[1]) : Policy.ALWAYS;
        if (policy.stored() && !policy.always()) {
            throw new IllegalArgumentException("JORAM flushes always, or keeps nothing");
        }
        int port = freePort();
        Path servers = folder.resolve("a3servers.xml");
        Files.writeString(servers, SERVERS.formatted(store(policy), port));
        System.setProperty("fr.dyade.aaa.agent.A3CONF_DIR", folder.toString());
        AgentServer.init((short) 0, folder.resolve("s0").toString(), null);
        AgentServer.start();
        System.out.println("listening joram 127.0.0.1:" + port);
        System.out.println("ready");
    }

    private static String store(Policy policy) {
        return policy.stored() ? "fr.dyade.aaa.ext.NGTransaction" : "fr.dyade.aaa.util.NullTransaction";
    }

    /** It is given its port, and takes 0 for one. */
    private static int freePort() throws Exception {
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
