package dunlin.interop;

import java.net.URI;
import java.nio.file.Path;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.TransportConnector;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.store.kahadb.disk.journal.Journal.JournalDiskSyncStrategy;

/**
 * ActiveMQ Classic on loopback ports, with its KahaDB in the folder given: {@code Classic FOLDER
 * [POLICY]}. Prints where it listens as Dunlin does: for AMQP, and for clients of its own.
 */
public final class Classic {
    private Classic() {}

    public static void main(String[] arguments) throws Exception {
        Policy policy = arguments.length > 1 ? Policy.of(arguments[1]) : Policy.ALWAYS;
        BrokerService broker = broker(arguments[0], policy);
        // Without this the connector for AMQP leaves Nagle's algorithm on: 24 ms a commit.
        var amqp = broker.addConnector("amqp://127.0.0.1:0?transport.tcpNoDelay=true");
        var own = broker.addConnector("tcp://127.0.0.1:0");
        broker.start();
        broker.waitUntilStarted();
        announce("amqp", amqp);
        announce("openwire", own);
        System.out.println("ready");
        // None of its own threads keeps the process.
        broker.waitUntilStopped();
    }

    /** Without connectors, and not started. */
    static BrokerService broker(String folder, Policy policy) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setDataDirectory(folder);
        broker.setUseJmx(false);
        broker.setPersistent(policy.stored());
        if (policy.stored()) {
            broker.setPersistenceAdapter(store(Path.of(folder), policy));
        }
        return broker;
    }

    private static KahaDBPersistenceAdapter store(Path folder, Policy policy) {
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(folder.resolve("kahadb").toFile());
        if (policy.always()) {
            store.setJournalDiskSyncStrategy(JournalDiskSyncStrategy.ALWAYS.name());
        } else {
            store.setJournalDiskSyncStrategy(JournalDiskSyncStrategy.PERIODIC.name());
            store.setJournalDiskSyncInterval(policy.period().toMillis());
        }
        return store;
    }

    private static void announce(String protocol, TransportConnector connector) throws Exception {
        URI address = connector.getConnectUri();
        System.out.println("listening " + protocol + " 127.0.0.1:" + address.getPort());
    }
}
