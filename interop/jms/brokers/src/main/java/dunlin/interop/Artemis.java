package dunlin.interop;

import java.nio.file.Path;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptor;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.RoutingType;

/**
 * ActiveMQ Artemis on a loopback port, with its journal in the folder given: {@code Artemis FOLDER
 * [PORT]}. Without a port it takes a free one. Prints where it listens as Dunlin does.
 */
public final class Artemis {
    private Artemis() {}

    public static void main(String[] arguments) throws Exception {
        int port = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0;
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration(Path.of(arguments[0]), port));
        broker.start();
        var acceptor = (NettyAcceptor) broker.getActiveMQServer().getRemotingService()
                .getAcceptor("amqp");
        System.out.println("listening amqp 127.0.0.1:" + acceptor.getActualPort());
        System.out.println("ready");
    }

    private static Configuration configuration(Path folder, int port) throws Exception {
        ConfigurationImpl configuration = new ConfigurationImpl();
        configuration.setBrokerInstance(folder.toFile());
        return configuration
                .setJournalDirectory(folder.resolve("journal").toString())
                .setBindingsDirectory(folder.resolve("bindings").toString())
                .setPagingDirectory(folder.resolve("paging").toString())
                .setLargeMessagesDirectory(folder.resolve("large").toString())
                .setJournalType(JournalType.NIO)
                .setSecurityEnabled(false)
                .setJMXManagementEnabled(false)
                // Expiry is a scenario of its own: the default of 30 s is far longer than a test.
                .setMessageExpiryScanPeriod(100)
                .addAcceptorConfiguration("amqp",
                        "tcp://127.0.0.1:" + port + "?protocols=AMQP;amqpCredits=1000;"
                                + "amqpMinCredits=300;amqpMinLargeMessageSize=102400;useEpoll=false")
                .addAddressSetting("#", settings());
    }

    /** As Dunlin comes: ten attempts, then the dead letters; queues come and go by themselves. */
    private static AddressSettings settings() {
        return new AddressSettings()
                .setMaxDeliveryAttempts(10)
                .setRedeliveryDelay(0)
                .setDeadLetterAddress(SimpleString.of("DLQ"))
                .setExpiryAddress(SimpleString.of("DLQ"))
                .setDefaultAddressRoutingType(RoutingType.ANYCAST)
                .setAutoCreateQueues(true)
                .setAutoCreateAddresses(true)
                .setMaxSizeBytes(-1);
    }
}
