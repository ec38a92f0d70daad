//! The words of `--listen` and `--insecure-listen`: protocols at addresses.
//!
//! Commas divide a list, in variables too. So an option of a listener, such as the mode of its
//! socket, is an item of its own, and is about the listener before it.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;

use access::check_user_name;
use server::{Address, Listen, NETWORKS_MAX, Network, Protocol, UnixSocket, group_number};

/// An item of a list of listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenItem {
    /// `PROTOCOL=ADDRESS`.
    Listener(Listen),
    /// `ADDRESS`, of a listener that the other list has.
    At(Vec<SocketAddr>),
    /// An option of the listener before.
    Option(ListenOption),
}

/// An option of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenOption {
    /// `mode=OCTAL`, of a socket in the file system.
    Mode(u32),
    /// `group=NAME`, of a socket in the file system.
    Group(u32),
    /// `user=NAME`: the user that its clients are.
    User(Arc<str>),
    /// `from=NETWORK`: addresses that may connect.
    From(Network),
    /// `proxy-from=NETWORK`: addresses of proxies.
    ProxyFrom(Network),
}

/// An item of `--listen`.
pub(crate) fn listen(text: &str) -> Result<ListenItem, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not PROTOCOL=ADDRESS, such as {EXAMPLE}"))?;
    Ok(ListenItem::Option(match name {
        "mode" => ListenOption::Mode(mode(value)?),
        "group" => ListenOption::Group(group(value)?),
        "user" => ListenOption::User(user(value)?),
        "from" => ListenOption::From(network(value)?),
        "proxy-from" => ListenOption::ProxyFrom(network(value)?),
        name => {
            let (protocol, by_tls) = protocol(name)?;
            let address = address(value, protocol.usual_port(by_tls))?;
            return Ok(ListenItem::Listener(Listen::at(protocol, by_tls, address)));
        }
    }))
}

/// An item of `--insecure-listen`.
pub(crate) fn insecure_listen(text: &str) -> Result<ListenItem, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Ok(ListenItem::At(socket_addresses(text, None)?));
    };
    let (protocol, by_tls) = protocol(name)?;
    let address = Address::Tcp(socket_addresses(value, Some(protocol.usual_port(by_tls)))?);
    let listen = Listen { insecure: true, ..Listen::at(protocol, by_tls, address) };
    Ok(ListenItem::Listener(listen))
}

/// The listeners of both lists; `None` where neither is given.
pub(crate) fn listeners(
    listen: Option<Vec<ListenItem>>,
    insecure: Option<Vec<ListenItem>>,
) -> Result<Option<Vec<Listen>>, String> {
    if listen.is_none() && insecure.is_none() {
        return Ok(None);
    }
    let mut all = joined(listen.unwrap_or_default())?;
    for item in insecure.unwrap_or_default() {
        match item {
            ListenItem::Listener(exposed) => {
                let is_same = |listen: &&mut Listen| {
                    listen.scheme() == exposed.scheme() && listen.address == exposed.address
                };
                match all.iter_mut().find(is_same) {
                    Some(listen) => listen.insecure = true,
                    None => all.push(exposed),
                }
            }
            ListenItem::At(addresses) => expose(&mut all, &addresses)?,
            ListenItem::Option(_) => {
                unreachable!("no such item is made of --insecure-listen")
            }
        }
    }
    Ok(Some(all))
}

/// Each listener with its options.
fn joined(items: Vec<ListenItem>) -> Result<Vec<Listen>, String> {
    let mut all: Vec<Listen> = Vec::new();
    for item in items {
        match (item, all.last_mut()) {
            (ListenItem::Listener(listen), _) => all.push(listen),
            (ListenItem::Option(option), Some(listen)) => apply(option, listen)?,
            _ => {
                let example = format!("--listen {EXAMPLE},user=jobs");
                return Err(format!("an option stands behind its listener: {example}"));
            }
        }
    }
    Ok(all)
}

fn apply(option: ListenOption, listen: &mut Listen) -> Result<(), String> {
    let admission = &mut listen.admission;
    match (option, &mut listen.address) {
        (ListenOption::Mode(mode), Address::Unix(socket)) => socket.mode = mode,
        (ListenOption::Group(group), Address::Unix(socket)) => socket.group = Some(group),
        (ListenOption::Mode(_) | ListenOption::Group(_), _) => {
            let what = "mode and group stand behind a socket: --listen redis=unix:PATH,mode=0660";
            return Err(what.into());
        }
        (ListenOption::User(user), _) => admission.user = Some(user),
        (ListenOption::From(network), _) => add("from", &mut admission.from, network)?,
        (ListenOption::ProxyFrom(network), _) => {
            add("proxy-from", &mut admission.proxies, network)?;
        }
    }
    Ok(())
}

fn add(option: &str, networks: &mut Vec<Network>, network: Network) -> Result<(), String> {
    if networks.len() == NETWORKS_MAX {
        return Err(format!("a listener takes {NETWORKS_MAX} of {option}= at most: join some"));
    }
    networks.push(network);
    Ok(())
}

fn expose(all: &mut [Listen], addresses: &[SocketAddr]) -> Result<(), String> {
    let address = Address::Tcp(addresses.to_vec());
    let mut found = false;
    for listen in all.iter_mut().filter(|listen| listen.address == address) {
        listen.insecure = true;
        found = true;
    }
    let named = || addresses.first().map(ToString::to_string).unwrap_or_default();
    let missing =
        || format!("--insecure-listen {}: no listener is there, say --listen too", named());
    if found { Ok(()) } else { Err(missing()) }
}

/// The protocol of that name, and true if it is spoken by TLS.
fn protocol(name: &str) -> Result<(Protocol, bool), String> {
    Protocol::named(name).ok_or_else(|| {
        let plain = Protocol::ALL.map(Protocol::name);
        let by_tls = Protocol::ALL.map(Protocol::name_by_tls);
        let known = [plain, by_tls].concat().join(", ");
        format!("`{name}` is no protocol; there is: {known}")
    })
}

fn address(text: &str, usual_port: u16) -> Result<Address, String> {
    if let Some(name) = text.strip_prefix("systemd:") {
        // As systemd restricts them.
        let is_plain = |c: char| !c.is_control() && c != ':';
        return match name.len() {
            1..=NAME_BYTES_MAX if name.chars().all(is_plain) => {
                Ok(Address::Passed { name: name.into(), sockets: Vec::new() })
            }
            _ => Err(format!("`{text}` has no FileDescriptorName, such as systemd:redis")),
        };
    }
    match text.strip_prefix("unix:") {
        Some("") => Err(format!("`{text}` has no path, such as unix:/run/dunlin/redis.sock")),
        Some(path) => Ok(Address::Unix(UnixSocket {
            path: PathBuf::from(path),
            mode: UnixSocket::MODE,
            group: None,
        })),
        None => socket_addresses(text, Some(usual_port)).map(Address::Tcp),
    }
}

/// All addresses of a name, each once, or the one that is written out. A host without a port has
/// the usual one, if there is one.
fn socket_addresses(text: &str, usual_port: Option<u16>) -> Result<Vec<SocketAddr>, String> {
    let wrong = |cause: &str| format!("`{text}` is no address with a port: {cause}");
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = is_number || text.contains(':') && !text.ends_with(']');
    if let Some(port) = usual_port.filter(|_| !has_port) {
        return socket_addresses(&format!("{text}:{port}"), None);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("say HOST:PORT"))?;
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong(&format!("`{port}` is no port, which is a number from 0 to 65535")));
    }
    let port: u16 = port.parse().map_err(|_| wrong("a port is a number from 0 to 65535"))?;
    if host.is_empty() {
        return Err(wrong("there is no host, such as 127.0.0.1 or localhost"));
    }
    if host.contains(':') {
        return Err(wrong("an address of IPv6 stands in brackets, such as [::1]:6379"));
    }
    // This holds regardless of the machine's hosts table.
    if host.eq_ignore_ascii_case("localhost")
        && let Address::Tcp(both) = Address::loopback(port)
    {
        return Ok(both);
    }
    let found = (host, port).to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(wrong("the name has no address")) } else { Ok(addresses) }
}

/// Permissions, as `chmod` takes them in digits.
fn mode(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("`{text}` are no permissions: use digits from 0 to 7, such as 0660"))
}

/// A group by its number, or by its name in `/etc/group`.
fn group(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().or_else(|| group_number(text));
    number.ok_or_else(|| format!("`{text}` is no group in /etc/group: use another, or its number"))
}

/// The name of a user, which the users file may have later.
fn user(text: &str) -> Result<Arc<str>, String> {
    check_user_name(text).map_err(|fault| format!("`{text}` is no user: the name {fault}"))?;
    Ok(text.into())
}

fn network(text: &str) -> Result<Network, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is no network: write an address, or 10.0.0.0/24 with zeros behind it")
    })
}

/// Bytes of the name of a socket that systemd passes.
const NAME_BYTES_MAX: usize = 255;

const EXAMPLE: &str = "beanstalkd=127.0.0.1:11300";

#[cfg(test)]
mod tests {
    use super::*;

    fn both(listen: &[&str], insecure: &[&str]) -> Result<Vec<Listen>, String> {
        let items = |texts: &[&str], parse: fn(&str) -> Result<ListenItem, String>| {
            texts.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()
        };
        let (listen, insecure) = (items(listen, super::listen)?, items(insecure, insecure_listen)?);
        Ok(listeners(Some(listen), Some(insecure))?.unwrap())
    }

    fn one(text: &str) -> Result<Address, String> {
        Ok(both(&[text], &[])?.remove(0).address)
    }

    fn tcp(texts: &[&str]) -> Address {
        Address::Tcp(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn listeners_are_protocols_at_addresses() {
        assert_eq!(one("beanstalkd=127.0.0.1:0"), Ok(tcp(&["127.0.0.1:0"])));
        assert_eq!(one("redis=[::1]:65535"), Ok(tcp(&["[::1]:65535"])));
        assert_eq!(one("redis=10.0.0.1"), Ok(tcp(&["10.0.0.1:6379"])));
        assert_eq!(one("rediss=10.0.0.1"), Ok(tcp(&["10.0.0.1:6380"])));
        assert_eq!(one("amqps=[::1]"), Ok(tcp(&["[::1]:5671"])));
        assert_eq!(one("https=localhost"), Ok(tcp(&["127.0.0.1:8443", "[::1]:8443"])));
        let listen = both(&["beanstalkds=127.0.0.1:1"], &[]).unwrap().remove(0);
        assert_eq!((listen.protocol, listen.by_tls), (Protocol::Beanstalkd, true));
        assert_eq!(one("http=LOCALHOST:80"), Ok(tcp(&["127.0.0.1:80", "[::1]:80"])));
        for (wrong, named) in [
            ("11300", "PROTOCOL=ADDRESS"),
            ("smtp=127.0.0.1:25", "beanstalkd"),
            ("redis=6379", "HOST:PORT"),
            ("redis=:6379", "no host"),
            ("redis=127.0.0.1:", "no port"),
            ("redis=127.0.0.1:65536", "0 to 65535"),
            ("redis=127.0.0.1:-1", "0 to 65535"),
            ("redis=127.0.0.1:redis", "0 to 65535"),
            ("redis=::1:6379", "brackets"),
            ("redis=[::1]:", "no port"),
            ("redis=no host:1", "no address"),
            ("redis=", "HOST:PORT"),
        ] {
            let error = one(wrong).unwrap_err();
            assert!(error.contains(named), "{wrong}: {error}");
        }
        assert_eq!(listeners(None, None), Ok(None));
    }

    #[test]
    fn sockets_have_modes_and_groups() {
        let socket = |path: &str, mode, group| {
            Ok(Address::Unix(UnixSocket { path: PathBuf::from(path), mode, group }))
        };
        assert_eq!(one("redis=unix:/run/a.sock"), socket("/run/a.sock", 0o660, None));
        let listen = ["redis=unix:a", "mode=0600", "group=7", "amqp=unix:b", "mode=777"];
        let all = both(&listen, &[]).unwrap();
        assert_eq!(Ok(all[0].address.clone()), socket("a", 0o600, Some(7)));
        assert_eq!(Ok(all[1].address.clone()), socket("b", 0o777, None));
        for wrong in ["mode=8", "mode=", "mode=rw", "mode=07777", "group=no-such-group"] {
            assert!(both(&["redis=unix:a", wrong], &[]).is_err(), "{wrong}");
        }
        for wrong in [&["mode=0600"][..], &["redis=127.0.0.1:1", "mode=0600"], &["redis=unix:"]] {
            assert!(both(wrong, &[]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn passed_sockets_have_names() {
        let passed = |name: &str| Ok(Address::Passed { name: name.into(), sockets: Vec::new() });
        assert_eq!(one("redis=systemd:cache"), passed("cache"));
        assert_eq!(one("amqps=systemd:dunlin.socket"), passed("dunlin.socket"));
        for wrong in ["redis=systemd:", "redis=systemd:a:b"] {
            assert!(one(wrong).unwrap_err().contains("FileDescriptorName"), "{wrong}");
        }
        assert!(both(&["redis=systemd:a", "mode=0600"], &[]).is_err(), "the unit has the mode");
    }

    #[test]
    fn listeners_have_users_and_networks() {
        let listen =
            ["redis=127.0.0.1:1", "user=jobs", "amqp=[::1]:2", "from=10.0.0.0/8", "from=::1"];
        let all = both(&listen, &[]).unwrap();
        let networks = |listen: &Listen| {
            listen.admission.from.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!((all[0].admission.user.as_deref(), networks(&all[0]).len()), (Some("jobs"), 0));
        assert_eq!(all[1].admission.user, None);
        assert_eq!(networks(&all[1]), ["10.0.0.0/8", "::1/128"]);
        let socket = both(&["beanstalkd=unix:a", "mode=0600", "user=jobs"], &[]).unwrap();
        assert_eq!(socket[0].admission.user.as_deref(), Some("jobs"));
        let proxied = both(&["redis=127.0.0.1:1", "proxy-from=10.0.0.1"], &[]).unwrap();
        assert_eq!(proxied[0].admission.proxies[0].to_string(), "10.0.0.1/32");
        // The other list opens the same listener.
        let opened = both(&["redis=0.0.0.0:1", "user=jobs"], &["redis=0.0.0.0:1"]).unwrap();
        assert!(opened[0].insecure && opened[0].admission.user.is_some() && opened.len() == 1);
        for (wrong, told) in [
            (&["user=jobs"][..], "stands behind its listener"),
            (&["redis=127.0.0.1:1", "user="], "is no user"),
            (&["redis=127.0.0.1:1", "user=a b"], "space"),
            (&["redis=127.0.0.1:1", "from=10.0.0.1/8"], "is no network"),
            (&["redis=127.0.0.1:1", "from=localhost"], "is no network"),
        ] {
            let error = both(wrong, &[]).unwrap_err();
            assert!(error.contains(told), "{wrong:?}: {error}");
        }
        let mut many = vec!["redis=127.0.0.1:1"];
        many.extend(["from=10.0.0.0/8"; NETWORKS_MAX]);
        assert!(both(&many, &[]).is_ok());
        many.push("from=::1");
        assert!(both(&many, &[]).unwrap_err().contains("64 of from= at most"));
    }

    #[test]
    fn insecure_listeners_are_named_each() {
        let flags = |listen: &[&str], insecure: &[&str]| {
            let all = both(listen, insecure)?;
            Ok(all.iter().map(|it| (it.protocol, it.insecure)).collect::<Vec<_>>())
        };
        let (amqp, redis) = (Protocol::Amqp, Protocol::Redis);
        let (open, other) = ("redis=0.0.0.0:6379", "amqp=0.0.0.0:5672");
        assert_eq!(flags(&[open, other], &[open]), Ok(vec![(redis, true), (amqp, false)]));
        assert_eq!(
            flags(&[open, other], &["0.0.0.0:5672"]),
            Ok(vec![(redis, false), (amqp, true)])
        );
        assert_eq!(flags(&[open], &[other]), Ok(vec![(redis, false), (amqp, true)]));
        assert_eq!(flags(&[], &[open]), Ok(vec![(redis, true)]));
        let error: Result<Vec<(Protocol, bool)>, String> = flags(&[open], &["0.0.0.0:1"]);
        assert!(error.unwrap_err().contains("0.0.0.0:1: no listener"));
        assert!(both(&[], &["redis=unix:/a"]).is_err(), "nothing is insecure about it");
    }
}
