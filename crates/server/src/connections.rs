//! The connections of one reactor, found by their session's id: the id holds the place.

use std::cmp::Reverse;

use model::SessionId;

use crate::connection::Connection;

/// A table of connections. A place is used again, an id never. The serial number tells them apart,
/// so an event or a reply for a connection that is gone finds nothing.
#[derive(Debug)]
pub(crate) struct Connections {
    reactor: u64,
    serial: u64,
    places: Vec<Option<(SessionId, Box<Connection>)>>,
    free: Vec<u64>,
}

impl Connections {
    /// None yet.
    pub(crate) fn new(reactor: usize) -> Self {
        let reactor = reactor as u64;
        assert!(reactor < crate::THREADS_MAX as u64, "invariant: THREADS_MAX holds");
        Self { reactor, serial: 0, places: Vec::new(), free: Vec::new() }
    }

    /// The id for the next connection, which is to be inserted under it.
    pub(crate) fn next_id(&mut self) -> SessionId {
        let place = self.free.last().copied().unwrap_or(self.places.len() as u64);
        assert!(place < 1 << PLACE_BITS, "invariant: Config::check limits the connections");
        self.serial += 1;
        // Higher bits of the serial number are shifted out: see the widths below.
        let SessionId(unplaced) = numbered(self.reactor as usize, self.serial);
        SessionId(unplaced | place << REACTOR_BITS)
    }

    pub(crate) fn insert(&mut self, id: SessionId, connection: Connection) -> &mut Connection {
        match self.free.pop() {
            Some(free) => assert!(free == place(id) as u64, "invariant: an id is used at once"),
            None => self.places.push(None),
        }
        let entry = self.places.get_mut(place(id)).expect("invariant: an id is used at once");
        let (_, connection) = entry.insert((id, Box::new(connection)));
        connection
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Connection> {
        match self.places.get_mut(place(id))? {
            Some((found, connection)) if *found == id => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Connection> {
        let entry = self.places.get_mut(place(id))?;
        let (_, connection) = entry.take_if(|(found, _)| *found == id)?;
        self.free.push(place(id) as u64);
        Some(*connection)
    }

    pub(crate) fn ids(&self) -> Vec<SessionId> {
        self.places.iter().flatten().map(|(id, _)| *id).collect()
    }

    /// The open connection with the most buffered bytes that may still be closed for it; among
    /// equals, the one that has been silent the longest.
    pub(crate) fn fullest(&mut self) -> Option<&mut Connection> {
        let all = self.places.iter_mut().flatten().map(|(_, connection)| &mut **connection);
        let open =
            all.filter_map(|connection| (!connection.marks().finished).then_some(connection));
        open.max_by_key(|connection| (connection.held(), Reverse(connection.active_at())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

/// The session of a reactor with this serial number, of which each is used once, at place 0.
pub(crate) const fn numbered(reactor: usize, serial: u64) -> SessionId {
    SessionId(serial << (PLACE_BITS + REACTOR_BITS) | reactor as u64)
}

/// The session with this serial number of a thread without places: it may use a million a second.
pub(crate) const fn numbered_densely(reactor: usize, serial: u64) -> SessionId {
    SessionId(serial << REACTOR_BITS | reactor as u64)
}

/// The reactor of a session.
pub(crate) const fn reactor_of(id: SessionId) -> usize {
    (id.0 & ((1 << REACTOR_BITS) - 1)) as usize
}

const fn place(id: SessionId) -> usize {
    ((id.0 >> REACTOR_BITS) & ((1 << PLACE_BITS) - 1)) as usize
}

/// 64 reactors and the gateway, with 262,144 connections each. The other bits allow 2^39
/// connections in a reactor's life: a year and a half of ten thousand a second. Thereafter an id is
/// used again only when its former owner is gone.
const REACTOR_BITS: u32 = 7;
const PLACE_BITS: u32 = 18;
const _: () = assert!(crate::THREADS_MAX < 1 << REACTOR_BITS);

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use model::Nanos;

    use super::*;
    use crate::client::Client;
    use crate::config::Protocol;
    use crate::connection_permits::ConnectionPermit;
    use crate::peer::{Peer, ProtocolState};
    use crate::tls::Transport;

    fn insert(connections: &mut Connections) -> SessionId {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut commons = ProtocolState::idle();
        let id = connections.next_id();
        let client = Client::of_test(socket);
        let peer = Peer::new(Protocol::Beanstalkd, id, &client, &mut commons, Nanos::ZERO);
        let connection = Connection::new(
            id,
            client,
            Transport::Plain,
            peer,
            ConnectionPermit::of_test(),
            Nanos::ZERO,
        );
        connections.insert(id, connection);
        id
    }

    #[test]
    fn connection_place_is_reused_id_never() {
        let mut connections = Connections::new(3);
        let first = insert(&mut connections);
        let second = insert(&mut connections);
        assert_eq!((reactor_of(first), reactor_of(second)), (3, 3));
        assert!(connections.remove(first).is_some());
        let third = insert(&mut connections);
        assert_eq!(place(third), place(first));
        assert_ne!(third, first);
        assert!(connections.get_mut(first).is_none());
        assert!(connections.remove(first).is_none());
        assert!(connections.get_mut(third).is_some());
        assert_eq!(connections.ids(), [third, second]);
        assert!(connections.remove(second).is_some() && connections.remove(third).is_some());
        assert!(connections.is_empty());
    }
}
