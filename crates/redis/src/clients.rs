//! All clients.

use std::collections::HashMap;

use drumlin_resp::ReplyWriter;

use crate::session::Session;

/// Clients by id. The one whose command runs is apart, so that its command can look at the others.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    sessions: HashMap<u64, Session>,
    /// The one that is apart, and what was sent to it meanwhile.
    running: Option<u64>,
    pushes: ReplyWriter,
    /// Those with new bytes to be sent, or to be closed.
    stirred: Vec<u64>,
}

impl Clients {
    /// Adds a client.
    pub(crate) fn add(&mut self, session: Session) {
        self.sessions.insert(session.id, session);
    }

    /// Removes a client that is gone.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Session> {
        self.sessions.remove(&id)
    }

    /// Takes a client apart, to run a command of its.
    pub(crate) fn begin(&mut self, id: u64) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.running = Some(id);
        self.pushes.set_protocol(session.protocol);
        Some(session)
    }

    /// Puts it back.
    pub(crate) fn end(&mut self, mut session: Session) {
        session.out.append(self.pushes.buffer_mut());
        self.running = None;
        self.sessions.insert(session.id, session);
    }

    /// Takes another client apart while one is, to answer it; it gets messages in `out` only.
    pub(crate) fn borrow(&mut self, id: u64) -> Option<Session> {
        self.sessions.remove(&id)
    }

    /// Puts that one back.
    pub(crate) fn give_back(&mut self, session: Session) {
        self.sessions.insert(session.id, session);
    }

    /// The client with this id, if its command is not running.
    pub(crate) fn get(&self, id: u64) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// All clients but the one whose command runs.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len() + usize::from(self.running.is_some())
    }

    /// Writes a message to a client; whether it is there.
    pub(crate) fn send(&mut self, id: u64, write: impl FnOnce(&mut ReplyWriter)) -> bool {
        if self.running == Some(id) {
            write(&mut self.pushes);
            return true;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        let out = std::mem::take(&mut session.out);
        let mut writer = ReplyWriter::append_to(out, session.protocol);
        write(&mut writer);
        session.out = writer.take();
        self.stirred.push(id);
        true
    }

    /// Has a client closed; whether it is there. The running one is closed after its reply.
    pub(crate) fn kill(&mut self, id: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else {
            return false;
        };
        session.is_killed = true;
        self.stirred.push(id);
        true
    }

    /// Those that got something, or are to be closed, since the last call.
    pub(crate) fn take_stirred(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.stirred)
    }
}
