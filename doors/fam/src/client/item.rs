//! Items as programs have them: a descriptor names one, and the first use opens it.

use super::connection::Connection;
use super::daemon::{Connections, strange};
use super::{Client, Shared};
use crate::error::{FamError, Result};
use crate::wire::{Answer, Ask, ItemFacts, Sealed, Ticket};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// How often a ticket is sealed again for one opening. Each time a server has joined meanwhile, or
/// the server of the item does not know yet that one has.
const MOST_SEALS: usize = 8;

/// An item of a descriptor.
pub struct Item {
    region: u64,
    item: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One for each object of the process that uses it.
    opened: Vec<Arc<Opened>>,
    /// What was known of it when it was opened last.
    facts: Option<ItemFacts>,
    maps: Vec<Map>,
}

/// Memory of an item in this process.
struct Map {
    /// What the program knows.
    at: usize,
    /// What is mapped.
    base: usize,
    length: usize,
}

/// An item with a ticket.
pub struct Opened {
    /// What may be done, and where it lies.
    pub ticket: Ticket,
    sealed: Sealed,
    /// Of the process's object that has opened it: operations of another one are on its own.
    connections: Weak<Connections>,
    /// The connection to the keeper that has given it.
    keeper: u64,
    /// By piece: the connection to its server, and the item's number there.
    numbers: Vec<OnceLock<Arc<Number>>>,
}

/// The number of an item at a server, which is given back when nothing uses it any more.
struct Number {
    connection: Arc<Connection>,
    number: u32,
}

impl Drop for Number {
    fn drop(&mut self) {
        self.connection.retire(self.number);
    }
}

impl Item {
    /// The item with this global descriptor.
    pub fn new(region: u64, item: u64) -> Self {
        Self { region, item, state: Mutex::default() }
    }

    /// The region, and the number of the item.
    pub fn name(&self) -> (u64, u64) {
        (self.region, self.item)
    }

    /// What was known of it when it was opened last.
    pub fn facts(&self) -> Option<ItemFacts> {
        self.state().facts.clone()
    }

    /// The item with its rights: those of its first use.
    ///
    /// # Errors
    /// [`FamError::NotFound`], [`FamError::NoPerm`]; [`FamError::Rpc`]: the keeper is lost.
    #[inline]
    pub fn opened(&self, client: &Shared) -> Result<Arc<Opened>> {
        client.check()?;
        let of_client = |one: &&Arc<Opened>| one.connections.as_ptr() == Arc::as_ptr(client.connections());
        let opened = self.state().opened.iter().find(of_client).cloned();
        opened.map_or_else(|| self.open(client), Ok)
    }

    /// A ticket that the keeper of today has sealed.
    ///
    /// # Errors
    /// Those of [`Self::opened`].
    pub fn sealed(&self, client: &Shared) -> Result<(Sealed, Arc<Opened>)> {
        let mut opened = self.opened(client)?;
        if opened.keeper != client.keeper()?.serial() {
            self.renew(client, &mut opened)?;
        }
        Ok((opened.sealed.clone(), opened))
    }

    /// The connection to the server of a piece, and the item's number there.
    ///
    /// # Errors
    /// Those of [`Self::opened`]; [`FamError::Rpc`], [`FamError::RpcClientNotFound`]: the server is
    /// not there.
    #[inline]
    pub fn number<'a>(
        &self,
        client: &Shared,
        opened: &'a mut Arc<Opened>,
        piece: usize,
    ) -> Result<(&'a Arc<Connection>, u32)> {
        if opened.numbers[piece].get().is_none_or(|one| !one.connection.is_usable()) {
            self.number_again(client, opened, piece)?;
        }
        let one = opened.numbers[piece].get().ok_or_else(strange)?;
        Ok((&one.connection, one.number))
    }

    /// Forgets the ticket: the next use opens it again. The servers forget the item when the last
    /// call that uses it has ended.
    pub fn close(&self) {
        let opened = std::mem::take(&mut self.state().opened);
        drop(opened);
    }

    fn open(&self, client: &Shared) -> Result<Arc<Opened>> {
        let keeper = client.keeper()?;
        let answer = keeper.ask(&Ask::Ticket { region: self.region, item: self.item })?;
        let Answer::Ticket { ticket: sealed, facts } = answer else { return Err(strange()) };
        let ticket = sealed.read().ok_or_else(strange)?;
        let numbers = ticket.pieces.iter().map(|_| OnceLock::new()).collect();
        let opened = Arc::new(Opened {
            ticket,
            sealed,
            connections: Arc::downgrade(client.connections()),
            keeper: keeper.serial(),
            numbers,
        });
        let mut state = self.state();
        state.facts = Some(facts);
        drop(state);
        self.keep(&opened);
        Ok(opened)
    }

    /// Has the ticket sealed again: a server has joined, or the keeper. A former keeper's ticket is
    /// none, and another one is given, with the rights of today.
    fn renew(&self, client: &Shared, opened: &mut Arc<Opened>) -> Result<()> {
        let keeper = client.keeper()?;
        let (sealed, facts) = match keeper.ask(&Ask::Seal { ticket: opened.sealed.clone() }) {
            Ok(Answer::Ticket { ticket, facts }) => (ticket, facts),
            Ok(_) => return Err(strange()),
            Err(failure) if failure.error == FamError::Metadata => {
                *opened = self.open(client)?;
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        self.state().facts = Some(facts);
        self.replace(opened, sealed, keeper.serial());
        Ok(())
    }

    /// Opens the piece at its server.
    #[cold]
    fn number_again(&self, client: &Shared, opened: &mut Arc<Opened>, piece: usize) -> Result<()> {
        if opened.numbers[piece].get().is_some() {
            // The server was lost: its number is nothing any more, those of the others are.
            let (sealed, keeper) = (opened.sealed.clone(), opened.keeper);
            self.replace(opened, sealed, keeper);
        }
        let server = |opened: &Opened| {
            let piece = opened.ticket.pieces.get(piece);
            piece.map(|piece| piece.server).ok_or_else(|| FamError::NotFound.because("the item has changed"))
        };
        let connection = client.server(server(opened)?)?;
        connection.make_room_for_number();
        let open = |opened: &Opened| match connection.ask(&Ask::Open { ticket: opened.sealed.clone() })? {
            Answer::Opened { number } => Ok(number),
            _ => Err(strange()),
        };
        let mut seals = 0;
        let number = loop {
            match open(opened) {
                Err(failure) if failure.error == FamError::Metadata => {
                    if seals == MOST_SEALS {
                        return Err(FamError::Rpc.because("the keeper has not met the server again"));
                    }
                    seals += 1;
                    self.renew(client, opened)?;
                    server(opened)?;
                }
                other => break other?,
            }
        };
        // Another thread may have been faster; this number goes back then.
        let _ = opened.numbers[piece].set(Arc::new(Number { connection, number }));
        Ok(())
    }

    /// Keeps the ticket with this seal of a keeper, and the numbers whose connections hold.
    fn replace(&self, opened: &mut Arc<Opened>, sealed: Sealed, keeper: u64) {
        let numbers = opened.numbers.iter().map(|number| match number.get() {
            Some(one) if !one.connection.is_over() => OnceLock::from(one.clone()),
            _ => OnceLock::new(),
        });
        let fresh = Opened {
            ticket: opened.ticket.clone(),
            sealed,
            connections: opened.connections.clone(),
            keeper,
            numbers: numbers.collect(),
        };
        *opened = Arc::new(fresh);
        self.keep(opened);
    }

    /// Keeps it in the place of an earlier one, and of those whose objects are gone.
    fn keep(&self, opened: &Arc<Opened>) {
        let mut state = self.state();
        let all = std::mem::take(&mut state.opened);
        let (others, before): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| {
            one.connections.strong_count() != 0 && !Weak::ptr_eq(&one.connections, &opened.connections)
        });
        state.opened = others;
        state.opened.push(opened.clone());
        drop(state);
        drop(before);
    }

    /// Maps the item into this process.
    ///
    /// # Errors
    /// [`FamError::Unimpl`]: the model is another one, the item lies on several servers or on
    /// another host, or its memory cannot be opened. Those of [`Self::number`].
    pub fn map(&self, client: &Client) -> Result<usize> {
        if !client.options.is_shared {
            return Err(FamError::Unimpl.because("fam_map: openFamModel is not shared_memory"));
        }
        let mut opened = self.opened(&client.shared)?;
        if opened.ticket.pieces.len() != 1 {
            return Err(FamError::Unimpl.because("fam_map: the item lies on several servers"));
        }
        let (connection, number) = self.number(&client.shared, &mut opened, 0)?;
        if !connection.is_of_host() {
            // The number of a process is one of this host by the kernel's word alone.
            return Err(FamError::Unimpl.because("fam_map: the server is on another host"));
        }
        let Answer::Mapped { process, descriptor, offset, length, rights } =
            connection.ask(&Ask::Map { number })?
        else {
            return Err(strange());
        };
        let (base, start) = super::mapping::map(process, descriptor, (offset, length), rights)?;
        let map = Map { at: base + start, base, length: start + length as usize };
        let at = map.at;
        self.state().maps.push(map);
        Ok(at)
    }

    /// Takes a mapping away.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: there is none at this address.
    pub fn unmap(&self, at: usize) -> Result<()> {
        let mut state = self.state();
        let place = state.maps.iter().position(|map| map.at == at);
        let Some(place) = place else {
            return Err(FamError::Invalid.because("fam_unmap: the item is not mapped there"));
        };
        let map = state.maps.swap_remove(place);
        super::mapping::unmap(map.base, map.length);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
