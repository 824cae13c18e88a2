//! Keyspace notifications: which events are told to whom.

use drumlin_redis_store::{Event, EventClass};

use crate::clients::Clients;
use crate::pubsub::PubSub;

/// The classes that `notify-keyspace-events` names, and the two kinds of channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u32);

const KEYSPACE: u32 = 1 << 16;
const KEYEVENT: u32 = 1 << 17;

/// The letters, in the order in which Redis writes them. `A` stands for the first ten.
const LETTERS: [(u8, u32); 13] = [
    (b'g', bit(EventClass::Generic)),
    (b'$', bit(EventClass::String)),
    (b'l', bit(EventClass::List)),
    (b's', bit(EventClass::Set)),
    (b'h', bit(EventClass::Hash)),
    (b'z', bit(EventClass::SortedSet)),
    (b'x', bit(EventClass::Expired)),
    (b'e', bit(EventClass::Evicted)),
    (b't', bit(EventClass::Stream)),
    // Of modules; nothing is of this class here.
    (b'd', 1 << 15),
    (b'K', KEYSPACE),
    (b'E', KEYEVENT),
    (b'm', bit(EventClass::Missed)),
];
const NEW: (u8, u32) = (b'n', bit(EventClass::New));

const fn bit(class: EventClass) -> u32 {
    1 << class as u32
}

/// All that `A` stands for.
const ALL: u32 = {
    let mut all = 0;
    let mut at = 0;
    while at < 10 {
        all |= LETTERS[at].1;
        at += 1;
    }
    all
};

impl Classes {
    /// The classes that `text` names; `None` if a letter is unknown.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut bits = 0;
        for letter in text {
            let named = LETTERS.iter().chain([&NEW]);
            let mut named = named.filter(|(name, _)| name == letter);
            bits |= match letter {
                b'A' => ALL,
                _ => named.next()?.1,
            };
        }
        Some(Self(bits))
    }

    /// As Redis writes them.
    pub(crate) fn to_text(self) -> String {
        let mut text = String::new();
        let all = self.0 & ALL == ALL;
        if all {
            text.push('A');
        }
        for (letter, bit) in LETTERS.into_iter().chain([NEW]) {
            if self.0 & bit != 0 && !(all && bit & ALL != 0) {
                text.push(char::from(letter));
            }
        }
        text
    }

    /// Whether nobody wants any event.
    pub(crate) fn is_empty(self) -> bool {
        self.0 & (KEYSPACE | KEYEVENT) == 0
    }

    /// Whether anybody wants to know of new keys.
    pub(crate) fn has_new(self) -> bool {
        self.0 & NEW.1 != 0 && !self.is_empty()
    }

    /// Publishes `event` as far as it is wanted.
    pub(crate) fn tell(self, event: &Event, pubsub: &PubSub, clients: &mut Clients) {
        if self.0 & bit(event.class) == 0 {
            return;
        }
        if self.0 & KEYSPACE != 0 {
            let prefix = format!("__keyspace@{}__:", event.db);
            let channel = [prefix.as_bytes(), &event.key].concat();
            pubsub.publish(&channel, event.name.as_bytes(), clients);
        }
        if self.0 & KEYEVENT != 0 {
            let channel = format!("__keyevent@{}__:{}", event.db, event.name);
            pubsub.publish(channel.as_bytes(), &event.key, clients);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Classes;

    /// Goal: classes are written as Redis 7.0.15 writes them. Method: answers of its CONFIG GET after CONFIG SET.
    #[test]
    fn classes_are_written_as_redis_writes_them() {
        let text = |letters: &[u8]| Classes::parse(letters).map(Classes::to_text);
        assert_eq!(text(b"KEA").as_deref(), Some("AKE"));
        assert_eq!(text(b"K$lshzxetdg").as_deref(), Some("AK"));
        assert_eq!(text(b"KEg$").as_deref(), Some("g$KE"));
        assert_eq!(text(b"").as_deref(), Some(""));
        assert_eq!(text(b"Q"), None);
    }
}
