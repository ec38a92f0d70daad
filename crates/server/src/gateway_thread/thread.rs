//! The thread that HTTP lives on: a runtime with the gateway's loop and all of HTTP's connections.

use std::io;
use std::sync::Arc;

use http_api::{Options, Stage, serve};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};

use crate::Failure;
use crate::gateway_thread::gateway_loop::GatewayLoop;
use crate::gateway_thread::handle::Gateway;
use crate::hub::Hub;
use crate::listener::Listener;
use crate::socket_file::SocketFile;

/// What is to be served, once there is a thread.
pub(crate) struct HttpThread {
    runtime: Runtime,
    listeners: Vec<http_api::Listener>,
    /// Files of the sockets among them: they go when the thread ends.
    files: Vec<SocketFile>,
    options: Options,
}

impl HttpThread {
    /// Makes ready what the system may refuse.
    pub(crate) fn new(listeners: Vec<Listener>, options: Options) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let entered = runtime.enter();
        let mut files = Vec::new();
        let mut ready = Vec::new();
        for listener in listeners {
            let (socket, file) = listener.into_parts();
            ready.push(match file {
                Some(file) => {
                    files.push(file);
                    let socket = tokio::net::UnixListener::from_std(socket.into())?;
                    http_api::Listener::Unix(socket)
                }
                None => http_api::Listener::Tcp(tokio::net::TcpListener::from_std(socket.into())?),
            });
        }
        drop(entered);
        Ok(Self { runtime, listeners: ready, files, options })
    }

    /// Serves until the server ends. What leases there are end with it, through no fault of those
    /// who hold them.
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
    fn a_defect_of_the_pump_ends_the_server_and_not_only_the_pump() {
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
