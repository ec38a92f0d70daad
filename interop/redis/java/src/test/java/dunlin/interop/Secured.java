package dunlin.interop;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.concurrent.atomic.AtomicInteger;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;

/** A server with TLS and users, as the variables SECURED_… name it. */
final class Secured {
    static final String ADDRESS = System.getenv("SECURED_ADDR");
    static final String PASSWORD = System.getenv("SECURED_PASSWORD");

    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private Secured() {}

    /** A name that no other test uses. */
    static String freshName(String prefix) {
        long process = ProcessHandle.current().pid();
        return prefix + ".java-" + process + "-" + NUMBERS.incrementAndGet();
    }

    /** The file with the root of the server's certificate. */
    static Path root() {
        return Path.of(System.getenv("SECURED_CA"));
    }

    /** Sockets that trust this root alone. */
    static SSLSocketFactory sockets() throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (InputStream pem = Files.newInputStream(root())) {
            var certificate = CertificateFactory.getInstance("X.509").generateCertificate(pem);
            trusted.setCertificateEntry("root", certificate);
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context.getSocketFactory();
    }
}
