//! The words of `--listen` and `--insecure-listen`: protocols at addresses.
//!
//! Commas divide a list, in variables too. So an option of a Unix socket, such as its mode, is an
//! item of its own, and is about the listener before it.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use server::{Address, Listen, Protocol, UnixSocket};

/// An item of a list of listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenItem {
    /// `PROTOCOL=ADDRESS`.
    Listener(Listen),
    /// `ADDRESS`, of a listener that the other list has.
    At(Vec<SocketAddr>),
    /// `mode=OCTAL`, of the socket before.
    Mode(u32),
    /// `group=NAME`, of the socket before.
    Group(u32),
}

/// An item of `--listen`.
pub(crate) fn listen(text: &str) -> Result<ListenItem, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not PROTOCOL=ADDRESS, such as {EXAMPLE}"))?;
    match name {
        "mode" => mode(value).map(ListenItem::Mode),
        "group" => group(value).map(ListenItem::Group),
        name => {
            let (protocol, by_tls) = protocol(name)?;
            let address = address(value, protocol.usual_port(by_tls))?;
            Ok(ListenItem::Listener(Listen { protocol, by_tls, address, insecure: false }))
        }
    }
}

/// An item of `--insecure-listen`.
pub(crate) fn insecure_listen(text: &str) -> Result<ListenItem, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Ok(ListenItem::At(socket_addresses(text, None)?));
    };
    let (protocol, by_tls) = protocol(name)?;
    let address = Address::Tcp(socket_addresses(value, Some(protocol.usual_port(by_tls)))?);
    Ok(ListenItem::Listener(Listen { protocol, by_tls, address, insecure: true }))
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
            ListenItem::Mode(_) | ListenItem::Group(_) => {
                unreachable!("no such item is made of --insecure-listen")
            }
        }
    }
    Ok(Some(all))
}

/// Each listener with the options of its socket.
fn joined(items: Vec<ListenItem>) -> Result<Vec<Listen>, String> {
    let mut all: Vec<Listen> = Vec::new();
    for item in items {
        let before = all.last_mut().map(|listen| &mut listen.address);
        match (item, before) {
            (ListenItem::Listener(listen), _) => all.push(listen),
            (ListenItem::Mode(mode), Some(Address::Unix(socket))) => socket.mode = mode,
            (ListenItem::Group(group), Some(Address::Unix(socket))) => socket.group = Some(group),
            _ => {
                return Err(
                    "mode and group stand behind a socket: --listen redis=unix:PATH,mode=0660"
                        .into(),
                );
            }
        }
    }
    Ok(all)
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
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string(GROUPS).unwrap_or_default();
    number_of(text, &groups)
        .ok_or_else(|| format!("`{text}` is no group in {GROUPS}: use another, or its number"))
}

/// Its number, in lines of `NAME:PASSWORD:NUMBER:MEMBERS`.
fn number_of(name: &str, groups: &str) -> Option<u32> {
    let mut lines = groups.lines().map(|line| line.split(':'));
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(2)?.parse().ok()
}

const GROUPS: &str = "/etc/group";

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
        let groups = "root:x:0:\ndunlin:x:105:a,b\nbroken:x\n";
        let found = ["dunlin", "root", "broken", "x"].map(|name| number_of(name, groups));
        assert_eq!(found, [Some(105), Some(0), None, None]);
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
