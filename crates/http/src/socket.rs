//! The sockets of connections: TCP, and Unix sockets.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use input::{Admission, Proxied, ProxyReader};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Mutex;
use tokio::task::yield_now;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

/// A listener.
#[derive(Debug)]
pub struct Listener {
    /// Its socket.
    pub socket: ListenerSocket,
    /// The configuration of TLS, if it is spoken there.
    pub tls: Option<TlsConfig>,
    /// The clients that it takes, and as whom.
    pub admission: Arc<Admission>,
}

/// Gives the configuration of TLS for a new connection: certificates change while the server runs.
#[derive(Clone)]
pub struct TlsConfig(Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>);

impl TlsConfig {
    /// Configurations as this function gives them.
    #[must_use]
    pub fn new(current: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static) -> Self {
        Self(Arc::new(current))
    }

    /// Agrees with a peer about keys. Peers that have said hello pass one by one, and others are
    /// served in between: computing keys takes long.
    ///
    /// # Errors
    /// The peer broke the rules of TLS, or has gone.
    pub(crate) async fn accept<S>(
        self,
        socket: S,
        turnstile: &Mutex<()>,
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let turn = turnstile.lock().await;
        yield_now().await;
        drop(turn);
        hello.into_stream((self.0)()).await
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConfig")
    }
}

/// The socket of a listener.
#[derive(Debug)]
pub enum ListenerSocket {
    /// At an address of TCP.
    Tcp(TcpListener),
    /// At a socket in the file system.
    Unix(UnixListener),
}

/// An accepted connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// The next connection, and where its peer is, by TCP.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // If it fails, the socket is gone, and a read will tell.
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), Some(peer)))
            }
            ListenerSocket::Unix(listener) => Ok((Stream::Unix(listener.accept().await?.0), None)),
        }
    }
}

impl Stream {
    /// Reads the header in which a proxy tells where its client is, and no byte more.
    ///
    /// # Errors
    /// The connection ends or breaks, or the bytes are no such header ([`ProxyFault`]).
    pub(crate) async fn read_proxy_header(&self) -> io::Result<Proxied> {
        let mut reader = ProxyReader::default();
        loop {
            self.ready(Interest::READABLE).await?;
            let mut buffer = [0; HEADER_READ_BYTES];
            let wanted = reader.wanted().min(HEADER_READ_BYTES);
            let mut buffer = ReadBuf::new(buffer.get_mut(..wanted).unwrap_or_default());
            match self.try_read_buf(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {
                    if let Some(told) = reader.append(buffer.filled()).map_err(io::Error::other)? {
                        return Ok(told);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// True if its peer is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Tcp(stream) => {
                stream.local_addr().is_ok_and(|it| it.ip().to_canonical().is_loopback())
            }
            Self::Unix(_) => true,
        }
    }

    /// The number of the system's user that its process belonged to when it connected by a socket
    /// in the file system.
    pub(crate) fn unix_user(&self) -> Option<u32> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix(stream) => stream.peer_cred().ok().map(|credentials| credentials.uid()),
        }
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(context),
            Self::Unix(stream) => stream.poll_read_ready(context),
        }
    }

    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context),
            Self::Unix(stream) => stream.poll_write_ready(context),
        }
    }

    pub(crate) fn try_read_buf(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(buffer),
            Self::Unix(stream) => stream.try_read_buf(buffer),
        }
    }

    pub(crate) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write_vectored(parts),
            Self::Unix(stream) => stream.try_write_vectored(parts),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Bytes of a proxy's header that are read at once.
const HEADER_READ_BYTES: usize = 256;
