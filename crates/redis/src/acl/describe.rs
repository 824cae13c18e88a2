//! Users in the words of rules: `ACL LIST`, `ACL GETUSER`, ACL files.

use super::password::hex;
use super::selector::Selector;
use super::user::User;
use crate::catalog::{self, CATEGORIES, Categories, Entry};

/// All rules of a user; applied to a new one, they make the same user.
pub(crate) fn describe(user: &User) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = user.flags().map(|it| it.as_bytes().to_vec()).collect();
    let hashes = user.passwords.iter();
    words.extend(hashes.map(|hash| format!("#{}", hex(hash)).into_bytes()));
    words.push(selector(&user.root));
    for other in &user.others {
        let text = selector(other);
        let inner: Vec<_> = text.split(|byte| *byte == b' ').map(quoted).collect();
        words.push([b"(", &inner.join(&b' ')[..], b")"].concat());
    }
    words.join(&b' ')
}

/// A word of a selector, in quotes where it would end the selector or be read as quotes. Redis does not quote them, and reads others
/// than it wrote.
fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = !word.iter().any(|byte| b"()\"'\\".contains(byte));
    if is_plain || drumlin_base::bug!("redis-rule-unquoted") {
        return word.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in word {
        if b"\"\\".contains(byte) {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}

fn selector(selector: &Selector) -> Vec<u8> {
    let mut words = Vec::new();
    let keys = keys_of(selector);
    if !keys.is_empty() {
        words.push(keys);
    }
    let channels = channels_of(selector);
    match selector.all_channels {
        true => words.push(channels),
        false if channels.is_empty() => words.push(b"resetchannels".to_vec()),
        false => words.push([b"resetchannels ", &channels[..]].concat()),
    }
    words.push(commands_of(selector));
    words.join(&b' ')
}

/// The patterns of keys.
pub(crate) fn keys_of(selector: &Selector) -> Vec<u8> {
    if selector.all_keys {
        return b"~*".to_vec();
    }
    let keys: Vec<_> = selector.keys.iter().map(|it| it.describe()).collect();
    keys.join(&b' ')
}

/// The patterns of channels.
pub(crate) fn channels_of(selector: &Selector) -> Vec<u8> {
    if selector.all_channels {
        return b"&*".to_vec();
    }
    let channels = selector.channels.iter();
    let channels: Vec<_> = channels.map(|it| [b"&", &it[..]].concat()).collect();
    channels.join(&b' ')
}

/// The commands: all or none, then categories as long as one fits more than it does not, then single commands.
pub(crate) fn commands_of(selector: &Selector) -> Vec<u8> {
    let adds = !selector.is_open;
    let mut words = vec![if adds { "-@all" } else { "+@all" }.as_bytes().to_vec()];
    // What the words so far say.
    let mut said = Selector::new(false);
    said.set_all_commands(!adds);
    // What is left to be said.
    let mut left = selector.clone();
    let mut applied = Categories::default();
    while let Some((name, category)) = best(&left, applied, adds) {
        let sign = if adds { '+' } else { '-' };
        words.push(format!("{sign}@{name}").into_bytes());
        said.set_category(category, adds);
        left.set_category(category, !adds);
        applied = applied.and(category);
    }
    for entry in catalog::all() {
        single(selector, &mut said, entry, &mut words);
    }
    words.join(&b' ')
}

/// The category that says most of what is left to be said, and least of what is not meant. Counted are the commands of Redis, so
/// that the words are Redis's.
fn best(left: &Selector, applied: Categories, adds: bool) -> Option<(&'static str, Categories)> {
    let mut best = None;
    let (mut least_wrong, mut most_right) = (usize::MAX, 0);
    for (index, name) in CATEGORIES.into_iter().enumerate() {
        let category = Categories::one(index);
        if applied.has(category) {
            continue;
        }
        let all = catalog::all().iter();
        let all = all.filter(|it| !it.is_ours && it.categories.has(category));
        let (on, off): (Vec<_>, Vec<_>) = all.partition(|it| left.has_command(it));
        let (right, wrong) = match adds {
            true => (on.len(), off.len()),
            false => (off.len(), on.len()),
        };
        let is_better = wrong < least_wrong || wrong == least_wrong && right > most_right;
        if right > wrong && is_better {
            best = Some((name, category));
            (least_wrong, most_right) = (wrong, right);
        }
    }
    best
}

/// What is still to be said of one command.
fn single(selector: &Selector, said: &mut Selector, entry: &Entry, words: &mut Vec<Vec<u8>>) {
    let allowed = selector.has_command(entry);
    if allowed != said.has_command(entry) {
        let sign = if allowed { '+' } else { '-' };
        words.push(format!("{sign}{}", entry.name).into_bytes());
        said.set_command(entry, allowed);
    }
    if !allowed {
        for arg in selector.first_args_of(entry) {
            let head = format!("+{}|", entry.name).into_bytes();
            words.push([&head[..], arg].concat());
        }
    }
}
