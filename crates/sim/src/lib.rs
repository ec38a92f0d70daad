//! Deterministic simulation of Dunlin over a virtual clock and a faulty disk.
//!
//! A seed decides everything. Clients speak beanstalkd's protocol, AMQP and Redis' to the real
//! sessions, broker, engine and journal. The [`FaultyDisk`] below loses, tears and reorders
//! everything that its contract lets it. Processes fall at any step and in the middle of any disk
//! call. The [`Oracle`] of messages and the [`KeyOracle`] of lists and values know the replies that
//! clients read. They judge every reply and every recovery.
//!
//! ```text
//! Client -bytes-> Server { Session -> Broker { Engine, Journal } -> Gate } -bytes-> Client
//!    |                        |                     |                                 |
//!    '---- what it meant -----'---- in which order -'--- FaultyDisk      what it read-'
//!                                   Oracle, History
//! ```
//! A seed that fails is repeated with `cargo run -p dunlin-sim --bin sim -- --seed N --verbose`.

mod amount;
mod amqp_client;
mod amqp_workload;
mod client;
mod counted;
mod faulty_disk;
mod history;
mod http_client;
mod http_workload;
mod image;
mod inspection;
mod key_inspection;
mod key_oracle;
mod keyspace;
mod lying_disk;
mod oracle;
mod paged;
mod redis_client;
mod redis_workload;
mod registration;
mod rules;
mod run;
mod scenario;
mod server;
mod wish;
mod workload;
mod world;

pub use amqp_client::{AmqpClient, AmqpWish, Draft, Subscribing, Verdict};
pub use client::Client;
pub use counted::Counted;
pub use faulty_disk::{Fault, FaultyDisk, FaultyFile, Moment};
pub use history::{Changes, Content, Dead, Fall, Found, History, Kept, Nature, Standing};
pub use http_client::{HttpClient, HttpWish, Post, Received};
pub use image::{Extent, Image, SECTOR_BYTES};
pub use inspection::{Inspection, inspect};
pub use key_oracle::KeyOracle;
pub use keyspace::{EntryId, GroupShape, KeySnapshot, Pair, Picture, Shape, StreamShape};
pub use lying_disk::{Defect, LyingDisk};
pub use oracle::Oracle;
pub use paged::{Paged, Reader};
pub use redis_client::{Asked, Meant, ReadReply, RedisClient, Value, Words, words};
pub use run::{Failure, simulate, simulate_on};
pub use scenario::Scenario;
pub use server::{ListDefect, Outside, Server, ServerDefects};
pub use testkit::Rng;
pub use wish::{Answer, Which, Wish};
pub use workload::Character;
pub use world::{Tally, World};
