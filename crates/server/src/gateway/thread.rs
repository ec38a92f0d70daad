//! The thread that HTTP lives on: a runtime with the pump and all of HTTP's connections.

use std::net::TcpListener;
use std::sync::Arc;

use http_api::{Options, Stage, serve};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};

use crate::Failure;
use crate::gateway::handle::Gateway;
use crate::gateway::pump::Pump;
use crate::hub::Hub;

/// What is to be served, once there is a thread.
pub(crate) struct HttpThread {
    runtime: Runtime,
    listeners: Vec<tokio::net::TcpListener>,
    options: Options,
}

impl HttpThread {
    /// Makes ready what the system may refuse.
    pub(crate) fn new(listeners: Vec<TcpListener>, options: Options) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let entered = runtime.enter();
        let listeners = listeners.into_iter().map(tokio::net::TcpListener::from_std);
        let listeners = listeners.collect::<Result<_, _>>()?;
        drop(entered);
        Ok(Self { runtime, listeners, options })
    }

    /// Serves until the server ends. What leases there are end with it, through no fault of those
    /// who hold them.
    pub(crate) fn run(self, hub: &Arc<Hub>) {
        let Self { runtime, listeners, options } = self;
        let _serving = hub.begin_to_serve();
        let end = runtime.block_on(async {
            let (stage, seen) = watch::channel(Stage::Serving);
            let closing = Arc::new(Notify::new());
            let pump = Pump::new(Arc::clone(hub), stage);
            let pump = tokio::spawn(pump.run(Arc::clone(&closing)));
            serve(listeners, Gateway::new(Arc::clone(hub)), options, seen).await;
            closing.notify_one();
            pump.await
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
        let pump = Pump::new(Arc::clone(&hub), stage);
        let thread = std::thread::spawn(move || {
            let _pump = pump;
            panic!("as a defect would");
        });
        assert!(thread.join().is_err());
        assert!(matches!(hub.failure(), Some(Failure::Panicked(_))));
    }
}
