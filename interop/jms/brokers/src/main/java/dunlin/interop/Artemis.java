package dunlin.interop;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptor;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.nativo.jlibaio.LibaioContext;

/**
 * ActiveMQ Artemis on a loopback port, with its journal in the folder given: {@code Artemis FOLDER
 * [PORT [POLICY]]}. Port 0, or none, is a free one. Prints where it listens as Dunlin does.
 */
public final class Artemis {
    /** Writes by which the disk's speed is measured. */
    private static final int PROBES = 250;

    private Artemis() {}

    public static void main(String[] arguments) throws Exception {
        int port = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0;
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        Policy policy = arguments.length > 2 ? Policy.of(arguments[2]) : Policy.ALWAYS;
        Configuration configuration = configuration(Path.of(arguments[0]), port);
        keep(configuration, Path.of(arguments[0]), policy);
        broker.setConfiguration(configuration);
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
                .setSecurityEnabled(false)
                .setJMXManagementEnabled(false)
                // By default it gives no credit where other things fill nine tenths of the disk.
                .setMaxDiskUsage(-1)
                // Expiry is a scenario of its own: the default of 30 s is far longer than a test.
                .setMessageExpiryScanPeriod(100)
                .addAcceptorConfiguration("amqp",
                        "tcp://127.0.0.1:" + port + "?protocols=AMQP;amqpCredits=1000;"
                                + "amqpMinCredits=300;amqpMinLargeMessageSize=102400;useEpoll=false")
                .addAddressSetting("#", settings());
    }

    /**
     * It has no period of its own: what need not be flushed at once is written at the end of the
     * period, and left to the operating system then.
     */
    private static void keep(Configuration configuration, Path folder, Policy policy)
            throws IOException {
        configuration.setPersistenceEnabled(policy.stored())
                .setJournalDatasync(true)
                .setJournalSyncTransactional(policy.always())
                .setJournalSyncNonTransactional(policy.always())
                .setJournalType(LibaioContext.isLoaded() ? JournalType.ASYNCIO : JournalType.NIO);
        int nanos = policy.always() ? syncNanos(folder) : (int) policy.period().toNanos();
        configuration.setJournalBufferTimeout_NIO(nanos).setJournalBufferTimeout_AIO(nanos);
    }

    /**
     * How long its journal gathers writes before it flushes them. {@code artemis create} measures
     * the disk for that and so does this; its default is 3.3 ms, 20 times too long here.
     */
    private static int syncNanos(Path folder) throws IOException {
        Files.createDirectories(folder);
        Path probe = folder.resolve("probe");
        ByteBuffer block = ByteBuffer.allocateDirect(4096);
        try (FileChannel file = FileChannel.open(probe, StandardOpenOption.CREATE,
                StandardOpenOption.WRITE, StandardOpenOption.DELETE_ON_CLOSE)) {
            file.write(ByteBuffer.allocate(PROBES * block.capacity()));
            file.force(true);
            long begun = System.nanoTime();
            for (int written = 0; written < PROBES; written++) {
                file.write(block.clear(), (long) written * block.capacity());
                file.force(false);
            }
            return (int) ((System.nanoTime() - begun) / PROBES);
        }
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
