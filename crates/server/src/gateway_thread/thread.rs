//! The thread of HTTP: a runtime with the gateway's loop and all connections of HTTP.

use std::io;
use std::sync::Arc;

use http_api::{ListenerSocket, Options, Stage, TlsConfig, serve};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};

use crate::Failure;
use crate::config::Protocol;
use crate::gateway_thread::gateway_loop::GatewayLoop;
use crate::gateway_thread::handle::Gateway;
use crate::hub::Hub;
use crate::listener::{CERTIFIED, Listener};
use crate::socket_file::SocketFile;

/// The listeners and options of HTTP, until the thread runs.
pub(crate) struct HttpThread {
    runtime: Runtime,
    listeners: Vec<http_api::Listener>,
    /// The files of Unix sockets among them. They are removed when the thread ends.
    files: Vec<SocketFile>,
    options: Options,
}

impl HttpThread {
    /// Prepares the runtime and the listeners. The system may refuse these.
    pub(crate) fn new(
        listeners: Vec<Listener>,
        options: Options,
        hub: &Arc<Hub>,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let entered = runtime.enter();
        let mut files = Vec::new();
        let mut ready = Vec::new();
        for listener in listeners {
            let tls = listener.by_tls().then(|| {
                let hub = Arc::clone(hub);
                TlsConfig::new(move || hub.tls().expect(CERTIFIED).config(Protocol::Http))
            });
            let is_unix = listener.listening().tcp().is_none();
            let admission = Arc::clone(listener.admission());
            let (socket, file) = listener.into_parts();
            files.extend(file);
            let socket = if is_unix {
                ListenerSocket::Unix(UnixListener::from_std(socket.into())?)
            } else {
                ListenerSocket::Tcp(TcpListener::from_std(socket.into())?)
            };
            ready.push(http_api::Listener { socket, tls, admission });
        }
        drop(entered);
        Ok(Self { runtime, listeners: ready, files, options })
    }

    /// Serves until the server ends. All leases of HTTP end then; none counts as a failed delivery.
    pub(crate) fn run(self, hub: &Arc<Hub>) {
        let Self { runtime, listeners, files: _files, options } = self;
        let _serving = hub.begin_to_serve();
        let end = runtime.block_on(async {
            let (stage, seen) = watch::channel(Stage::Serving);
            let closing = Arc::new(Notify::new());
            let gateway_loop = GatewayLoop::new(Arc::clone(hub), stage);
            let gateway_loop = tokio::spawn(gateway_loop.run(Arc::clone(&closing)));
            serve(listeners, Gateway::new(Arc::clone(hub)), options, seen).await;
            closing.notify_one();
            gateway_loop.await
        });
        if end.is_err() {
            hub.fail(Failure::Panicked("http".into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use model::StorePolicy;

    use super::*;
    use crate::Config;

    #[test]
    fn loop_panic_ends_the_server() {
        let config = Config { policy: StorePolicy::Memory, ..Config::default() };
        let hub = Arc::new(crate::server::build(&config, None).unwrap());
        let (stage, _seen) = watch::channel(Stage::Serving);
        let gateway_loop = GatewayLoop::new(Arc::clone(&hub), stage);
        let thread = std::thread::spawn(move || {
            let _gateway_loop = gateway_loop;
            panic!("as a defect would");
        });
        assert!(thread.join().is_err());
        assert!(matches!(hub.failure(), Some(Failure::Panicked(_))));
    }
}
