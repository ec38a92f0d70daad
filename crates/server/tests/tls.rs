//! Clients by TLS: every protocol, the certificates that they get and show, and peers that break
//! the rules.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Directory, memory, start};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use server::{
    ClientCertificates, Config, Identity, Listen, Protocol, Running, Server, StartError,
    TlsSettings,
};

/// Far longer than anything takes that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Certificates of one root, in files of a directory that goes with it.
struct Authority {
    directory: Directory,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(test: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = Directory::new(test);
        std::fs::create_dir_all(&directory.0).unwrap();
        std::fs::write(directory.0.join("root.pem"), issuer.pem()).unwrap();
        Self { directory, issuer }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.0.join(name)
    }

    /// A certificate for these names in files of this name, with this number.
    fn issue(&self, file: &str, names: &[&str], serial: u64) -> Identity {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let identity = Identity {
            certificates: self.file(&format!("{file}.pem")),
            key: self.file(&format!("{file}.key")),
        };
        std::fs::write(&identity.certificates, certificate.pem()).unwrap();
        std::fs::write(&identity.key, key.serialize_pem()).unwrap();
        identity
    }

    fn settings(&self) -> TlsSettings {
        let identities = vec![self.issue("server", &["broker.example"], 1)];
        TlsSettings { identities, clients: None }
    }

    fn client(&self) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        Client { roots, versions: vec![&TLS13], name: "broker.example", shown: None, alpn: vec![] }
    }
}

/// A client before it connects.
struct Client {
    roots: RootCertStore,
    versions: Vec<&'static SupportedProtocolVersion>,
    name: &'static str,
    shown: Option<Identity>,
    alpn: Vec<Vec<u8>>,
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

impl Client {
    fn config(&self) -> Arc<ClientConfig> {
        use rustls::pki_types::pem::PemObject as _;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.shown {
            None => builder.with_no_client_auth(),
            Some(Identity { certificates, key }) => {
                let chain = CertificateDer::pem_file_iter(certificates).unwrap();
                let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols.clone_from(&self.alpn);
        config.resumption = Resumption::in_memory_sessions(4);
        Arc::new(config)
    }

    /// A stream on which no byte was sent yet.
    fn connect(&self, address: SocketAddr) -> Stream {
        connect(self.config(), self.name, address)
    }

    /// The reply to a command of Redis, or the error that ended the connection.
    fn ping(&self, address: SocketAddr) -> Result<String, String> {
        let mut stream = self.connect(address);
        ask(&mut stream, "PING\r\n", 7)
    }
}

fn connect(config: Arc<ClientConfig>, name: &'static str, address: SocketAddr) -> Stream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from(name).unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket)
}

/// Sends bytes; so many bytes of the answer.
fn ask(stream: &mut Stream, bytes: &str, count: usize) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    stream.write_all(bytes.as_bytes()).map_err(failed)?;
    let mut answer = vec![0; count];
    stream.read_exact(&mut answer).map_err(failed)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn by_tls(protocols: &[Protocol], tls: TlsSettings) -> Config {
    let listen = |protocol: &Protocol| Listen {
        by_tls: true,
        ..Listen::tcp(*protocol, SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    Config { listen: protocols.iter().map(listen).collect(), tls, ..memory() }
}

fn address(server: &Running, index: usize) -> SocketAddr {
    server.addresses()[index].tcp().unwrap()
}

fn refusal(config: Config) -> StartError {
    Server::start(config).err().expect("it does not start")
}

#[test]
fn every_protocol_is_spoken_by_tls() {
    let authority = Authority::new("tls-protocols");
    let server = start(by_tls(&Protocol::ALL, authority.settings()));
    let schemes: Vec<_> = server.addresses().iter().map(|it| it.scheme()).collect();
    assert_eq!(schemes, ["amqps", "beanstalkds", "rediss", "https"]);
    for (version, known) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)]
    {
        let client = Client { versions: vec![version], ..authority.client() };
        for (index, said, heard) in [
            (0, "AMQP\x03\x01\0\0", "AMQP\x03\x01\0\0"),
            (1, "use orders\r\nput 0 0 60 2\r\nhi\r\n", "USING orders\r\nINSERTED "),
            (2, "PING\r\n", "+PONG\r\n"),
            (3, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ] {
            let mut stream = client.connect(address(&server, index));
            let answer = ask(&mut stream, said, heard.len()).unwrap();
            assert_eq!(answer, heard);
            assert_eq!(stream.conn.protocol_version(), Some(known));
        }
    }
}

#[test]
fn large_bodies_pass_by_tls() {
    let authority = Authority::new("tls-large");
    let server = start(by_tls(&[Protocol::Redis], authority.settings()));
    let mut stream = authority.client().connect(address(&server, 0));
    let body: String = (0..3_000_000_u32).map(|it| char::from(b'a' + (it % 23) as u8)).collect();
    let pushed = format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n${}\r\n{body}\r\n", body.len());
    assert_eq!(ask(&mut stream, &pushed, 4).unwrap(), ":1\r\n");
    let head = format!("${}\r\n", body.len());
    let popped = ask(&mut stream, "RPOP l\r\n", head.len() + body.len() + 2).unwrap();
    assert!(popped == format!("{head}{body}\r\n"), "another body came back");
}

#[test]
fn tls_bytes_may_come_in_pieces() {
    let authority = Authority::new("tls-pieces");
    let server = start(by_tls(&[Protocol::Redis], authority.settings()));
    let mut stream = authority.client().connect(address(&server, 0));
    stream.conn.writer().write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    while answer.len() < 7 {
        let mut flight = Vec::new();
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut flight).unwrap();
        }
        for byte in flight {
            stream.sock.write_all(&[byte]).unwrap();
        }
        stream.conn.read_tls(&mut stream.sock).unwrap();
        stream.conn.process_new_packets().unwrap();
        // It fails while nothing has come.
        let _ = stream.conn.reader().read_to_end(&mut answer);
    }
    assert_eq!(answer, b"+PONG\r\n");
}

#[test]
fn connection_by_tls_ends_in_good_order() {
    let authority = Authority::new("tls-end");
    let server = start(by_tls(&[Protocol::Redis, Protocol::Beanstalkd], authority.settings()));
    let mut stream = authority.client().connect(address(&server, 0));
    assert_eq!(ask(&mut stream, "QUIT\r\n", 5).unwrap(), "+OK\r\n");
    let mut rest = Vec::new();
    // It fails if the connection ends without the word that nothing follows.
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    // A client that sends no more is answered.
    let mut stream = authority.client().connect(address(&server, 1));
    stream.write_all(b"use a\r\n").unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"USING a\r\n");
}

#[test]
fn plain_bytes_end_tls_connections() {
    let authority = Authority::new("tls-plain");
    let server = start(by_tls(&Protocol::ALL, authority.settings()));
    for index in 0..Protocol::ALL.len() {
        for said in ["PING\r\n", "GET / HTTP/1.1\r\n\r\n", "AMQP\0\x01\0\0", "\x16\x03\x01\x7f\x7f"]
        {
            let mut socket = TcpStream::connect(address(&server, index)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.write_all(said.as_bytes()).unwrap();
            let mut answer = Vec::new();
            // A reset ends it too.
            let _ = socket.read_to_end(&mut answer);
            let alert = 21;
            assert!(answer.first().is_none_or(|first| *first == alert), "{said:?}: {answer:?}");
        }
        assert!(server.counters().connections <= 1);
    }
    assert_eq!(authority.client().ping(address(&server, 2)).unwrap(), "+PONG\r\n");
}

#[test]
fn asked_name_chooses_certificate() {
    let authority = Authority::new("tls-names");
    let identities = vec![
        authority.issue("first", &["a.example"], 1),
        authority.issue("second", &["b.example", "*.c.example"], 2),
    ];
    let server = start(by_tls(&[Protocol::Redis], TlsSettings { identities, clients: None }));
    for name in ["a.example", "b.example", "x.c.example"] {
        let client = Client { name, ..authority.client() };
        assert_eq!(client.ping(address(&server, 0)).unwrap(), "+PONG\r\n", "{name}");
    }
    let client = Client { name: "other.example", ..authority.client() };
    let error = client.ping(address(&server, 0)).unwrap_err();
    assert!(error.contains("a.example"), "the first of all is shown: {error}");
}

#[test]
fn client_certificates_are_asked_for() {
    let authority = Authority::new("tls-clients");
    let stranger = Authority::new("tls-strangers");
    let good = authority.issue("good", &["orders"], 7);
    let revoked = authority.issue("revoked", &["fired"], 8);
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(4024, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number: SerialNumber::from(8),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&authority.issuer).unwrap();
    std::fs::write(authority.file("crl.pem"), list.pem().unwrap()).unwrap();
    for required in [true, false] {
        let clients = ClientCertificates {
            roots: authority.file("root.pem"),
            revoked: Some(authority.file("crl.pem")),
            required,
        };
        let settings = TlsSettings { clients: Some(clients), ..authority.settings() };
        let server = start(by_tls(&[Protocol::Redis, Protocol::Http], settings));
        let ping = |shown: Option<&Identity>| {
            let client = Client { shown: shown.cloned(), ..authority.client() };
            client.ping(address(&server, 0))
        };
        assert_eq!(ping(Some(&good)).unwrap(), "+PONG\r\n");
        assert_eq!(ping(None).is_ok(), !required);
        assert!(ping(Some(&revoked)).unwrap_err().contains("CertificateRevoked"));
        let unknown = stranger.issue("unknown", &["orders"], 7);
        assert!(ping(Some(&unknown)).is_err());
    }
}

#[test]
fn changed_certificates_serve_new_connections() {
    let authority = Authority::new("tls-reload");
    let settings = authority.settings();
    let server = start(by_tls(&[Protocol::Redis], settings));
    let at = address(&server, 0);
    let mut old = authority.client().connect(at);
    assert_eq!(ask(&mut old, "PING\r\n", 7).unwrap(), "+PONG\r\n");
    let renamed = Client { name: "renamed.example", ..authority.client() };
    assert!(renamed.ping(at).is_err());
    authority.issue("server", &["renamed.example"], 2);
    server.remote().reload();
    assert_eq!(renamed.ping(at).unwrap(), "+PONG\r\n");
    assert_eq!(ask(&mut old, "PING\r\n", 7).unwrap(), "+PONG\r\n", "it goes on");
    // A half-written file leaves the former certificates in use.
    for broken in ["", "-----BEGIN CERTIFICATE-----\nAAAA", "-----BEGIN CERTIFICATE-----\nAA==\n"] {
        std::fs::write(authority.file("server.pem"), broken).unwrap();
        server.remote().reload();
        assert_eq!(renamed.ping(at).unwrap(), "+PONG\r\n");
    }
}

/// It would keep the thread that obeys signals, until another process writes.
#[test]
fn pipe_of_certificates_is_not_read() {
    let authority = Authority::new("tls-pipe");
    let server = start(by_tls(&[Protocol::Redis], authority.settings()));
    let file = authority.file("server.pem");
    std::fs::remove_file(&file).unwrap();
    mkfifoat(CWD, &file, Mode::RWXU).unwrap();
    let (remote, (done, ends)) = (server.remote(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        remote.reload();
        done.send(())
    });
    ends.recv_timeout(PATIENCE).expect("a reload ends");
    assert_eq!(authority.client().ping(address(&server, 0)).unwrap(), "+PONG\r\n");
}

#[test]
fn demanded_protocol_is_the_listeners() {
    let authority = Authority::new("tls-alpn");
    let server = start(by_tls(&Protocol::ALL, authority.settings()));
    let all: [&[&str]; 4] = [&["amqp"], &["beanstalkd"], &["redis"], &["h2", "http/1.1"]];
    for (index, own) in all.iter().enumerate() {
        for demanded in all.concat() {
            let alpn = vec![demanded.as_bytes().to_vec()];
            let client = Client { alpn, ..authority.client() };
            let mut stream = client.connect(address(&server, index));
            let done = stream.conn.complete_io(&mut stream.sock);
            assert_eq!(done.is_ok(), own.contains(&demanded), "{demanded} at {index}");
        }
    }
}

#[test]
fn sessions_of_tls_are_resumed() {
    let authority = Authority::new("tls-resumption");
    let server = start(by_tls(&[Protocol::Redis, Protocol::Http], authority.settings()));
    for version in [&TLS12, &TLS13] {
        let client = Client { versions: vec![version], ..authority.client() };
        let config = client.config();
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut stream = connect(Arc::clone(&config), client.name, address(&server, 0));
            assert_eq!(ask(&mut stream, "PING\r\n", 7).unwrap(), "+PONG\r\n");
            assert_eq!(stream.conn.handshake_kind(), Some(expected));
        }
    }
}

#[test]
fn unusable_files_are_refused_by_name() {
    let authority = Authority::new("tls-files");
    let none = refusal(by_tls(&[Protocol::Redis], TlsSettings::default()));
    assert!(none.is_misuse() && none.to_string().contains("rediss needs a certificate"), "{none}");
    let good = authority.settings();
    let other = authority.issue("other", &["other.example"], 3);
    let text = authority.file("text.pem");
    std::fs::write(&text, "no PEM at all").unwrap();
    let identity = |certificates: &PathBuf, key: &PathBuf| TlsSettings {
        identities: vec![Identity { certificates: certificates.clone(), key: key.clone() }],
        clients: None,
    };
    let Identity { certificates, key } = good.identities[0].clone();
    let clients = |roots: &PathBuf, revoked: Option<&PathBuf>| {
        let (roots, revoked) = (roots.clone(), revoked.cloned());
        let clients = Some(ClientCertificates { roots, revoked, required: true });
        TlsSettings { clients, ..good.clone() }
    };
    let absent = authority.file("absent.pem");
    for (settings, file, cause) in [
        (identity(&absent, &key), "absent.pem", "No such file"),
        (identity(&certificates, &absent), "absent.pem", "No such file"),
        (identity(&text, &key), "text.pem", "BEGIN CERTIFICATE"),
        (identity(&certificates, &text), "text.pem", "BEGIN PRIVATE KEY"),
        (identity(&certificates, &other.key), "other.key", "does not belong"),
        (clients(&text, None), "text.pem", "BEGIN CERTIFICATE"),
        (clients(&certificates, Some(&text)), "text.pem", "BEGIN X509 CRL"),
    ] {
        let error = refusal(by_tls(&[Protocol::Redis], settings));
        assert!(matches!(error, StartError::Tls(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(file) && text.contains(cause), "{text}");
    }
    // Without a listener by TLS no file is read.
    let unread = identity(&absent, &absent);
    start(Config { tls: unread, ..memory() }).shutdown().unwrap();
}

#[test]
fn certificate_end_is_counted() {
    let authority = Authority::new("tls-expiry");
    let server = start(by_tls(&[Protocol::Redis], authority.settings()));
    // As rcgen says it of certificates without an end of their own: the year 4096.
    let end = server.counters().certificate_end.unwrap();
    assert!(end.as_secs() > 60_000_000_000 / 4, "{end:?}");
}
