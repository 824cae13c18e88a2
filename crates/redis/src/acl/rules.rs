//! Rules, one after the other, change a user.

use drumlin_resp::split_words;

use super::key_pattern::KeyPattern;
use super::merge::merged;
use super::password;
use super::rule_error::RuleError;
use super::selector::Selector;
use super::spaces::has_spaces;
use super::user::{Sanitize, User};

use crate::catalog;

type Outcome = Result<(), RuleError>;

/// Applies all rules to a user, some of which may be parts of a selector. `all_channels` says whether a new selector allows all
/// channels.
///
/// # Errors
/// As Redis words them. The user may have been changed in part: the caller works on a copy.
pub(super) fn apply_all(
    user: &mut User,
    rules: &[&[u8]],
    all_channels: bool,
) -> Result<(), String> {
    let merged = merged(rules).map_err(|start| {
        let start = String::from_utf8_lossy(start);
        format!("Unmatched parenthesis in acl selector starting at '{start}'.")
    })?;
    for rule in merged {
        apply(user, &rule, all_channels).map_err(|error| {
            // As Redis shows it, up to a zero.
            let rule = rule.split(|byte| *byte == 0).next().unwrap_or_default();
            let rule = String::from_utf8_lossy(rule);
            format!("Error in ACL SETUSER modifier '{rule}': {error}")
        })?;
    }
    Ok(())
}

/// Applies a rule to a user.
///
/// # Errors
/// Why it is no rule.
pub(super) fn apply(user: &mut User, rule: &[u8], all_channels: bool) -> Outcome {
    one(user, rule, all_channels)?;
    user.note_limits();
    Ok(())
}

fn one(user: &mut User, rule: &[u8], all_channels: bool) -> Outcome {
    let lower = rule.to_ascii_lowercase();
    match lower.as_slice() {
        b"" => {}
        b"on" => user.is_on = true,
        b"off" => user.is_on = false,
        b"skip-sanitize-payload" => user.sanitize = Sanitize::Never,
        b"sanitize-payload" => user.sanitize = Sanitize::Always,
        b"nopass" => {
            user.needs_no_password = true;
            user.passwords.clear();
        }
        b"resetpass" => {
            user.needs_no_password = false;
            user.passwords.clear();
        }
        b"clearselectors" => user.others.clear(),
        b"reset" => reset(user, all_channels),
        [b'>' | b'#', ..] => add_password(user, rule)?,
        [b'<' | b'!', ..] => remove_password(user, rule)?,
        [b'(', .., b')'] => {
            let selector = selector(rule, all_channels)?;
            user.others.push(selector);
        }
        _ => change(&mut user.root, rule, &lower)?,
    }
    Ok(())
}

fn reset(user: &mut User, all_channels: bool) {
    let name = std::mem::take(&mut user.name);
    *user = User::new(&name, all_channels);
    user.sanitize = Sanitize::Always;
}

/// The hash that a rule names behind its first byte, by the password or by itself.
fn named_hash(rule: &[u8]) -> Result<password::Hash, RuleError> {
    let (mark, rest) = rule.split_first().ok_or(RuleError::Syntax)?;
    match mark {
        b'>' | b'<' => Ok(password::hash(rest)),
        _ => password::parse(rest).ok_or(RuleError::BadHash),
    }
}

fn add_password(user: &mut User, rule: &[u8]) -> Outcome {
    let hash = named_hash(rule)?;
    if !user.passwords.contains(&hash) {
        user.passwords.push(hash);
    }
    user.needs_no_password = false;
    Ok(())
}

fn remove_password(user: &mut User, rule: &[u8]) -> Outcome {
    let hash = named_hash(rule)?;
    let at = user.passwords.iter().position(|known| *known == hash);
    user.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
    Ok(())
}

/// The selector between the parentheses of a rule.
fn selector(rule: &[u8], all_channels: bool) -> Result<Selector, RuleError> {
    let mut selector = Selector::new(all_channels);
    let inner = rule.get(1..rule.len() - 1).unwrap_or_default();
    // As Redis does it, quotes that do not match make it an empty one.
    for rule in split_words(inner).unwrap_or_default() {
        change(&mut selector, &rule, &rule.to_ascii_lowercase())?;
    }
    Ok(selector)
}

/// Applies a rule to a selector.
fn change(selector: &mut Selector, rule: &[u8], lower: &[u8]) -> Outcome {
    match lower {
        b"allkeys" | b"~*" => {
            selector.all_keys = true;
            selector.keys.clear();
        }
        b"resetkeys" => {
            selector.all_keys = false;
            selector.keys.clear();
        }
        b"allchannels" | b"&*" => {
            selector.all_channels = true;
            selector.channels.clear();
        }
        b"resetchannels" => {
            selector.all_channels = false;
            selector.channels.clear();
        }
        b"allcommands" | b"+@all" => selector.set_all_commands(true),
        b"nocommands" | b"-@all" => selector.set_all_commands(false),
        [b'~' | b'%', ..] => add_keys(selector, rule)?,
        [b'&', pattern @ ..] => {
            let own = rule.get(1..).unwrap_or(pattern);
            add_channels(selector, own)?;
        }
        [sign @ (b'+' | b'-'), b'@', name @ ..] => {
            let category = catalog::category(name).ok_or(RuleError::Unknown)?;
            selector.set_category(category, *sign == b'+');
        }
        [b'+', ..] => allow_command(selector, rule.get(1..).unwrap_or_default())?,
        [b'-', name @ ..] => {
            let entry = catalog::find(name).ok_or(RuleError::Unknown)?;
            selector.set_command(entry, false);
        }
        _ => return Err(RuleError::Syntax),
    }
    Ok(())
}

fn add_keys(selector: &mut Selector, rule: &[u8]) -> Outcome {
    if selector.all_keys {
        return Err(RuleError::AllKeys);
    }
    let new = KeyPattern::parse(rule).filter(|it| !has_spaces(&it.pattern));
    let new = new.ok_or(RuleError::Syntax)?;
    match selector
        .keys
        .iter_mut()
        .find(|it| it.pattern == new.pattern)
    {
        Some(known) => {
            known.reads |= new.reads;
            known.writes |= new.writes;
        }
        None => selector.keys.push(new),
    }
    Ok(())
}

fn add_channels(selector: &mut Selector, pattern: &[u8]) -> Outcome {
    if selector.all_channels {
        return Err(RuleError::AllChannels);
    }
    if has_spaces(pattern) {
        return Err(RuleError::Syntax);
    }
    if !selector.channels.iter().any(|known| known == pattern) {
        selector.channels.push(pattern.to_vec());
    }
    Ok(())
}

/// Allows a command, a subcommand, or a command with a first argument.
fn allow_command(selector: &mut Selector, name: &[u8]) -> Outcome {
    let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
        let entry = catalog::find(name).ok_or(RuleError::Unknown)?;
        selector.set_command(entry, true);
        return Ok(());
    };
    let (family, rest) = name.split_at(bar);
    let own = rest.get(1..).unwrap_or_default();
    let entry = catalog::find(family).ok_or(RuleError::Unknown)?;
    match () {
        () if entry.parts().1.is_some() => return Err(RuleError::ArgumentOfSubcommand),
        // What is told with blanks between has none itself.
        () if own.is_empty() || has_spaces(own) => return Err(RuleError::Syntax),
        () if entry.is_family() => {
            let child = catalog::child(entry, own).ok_or(RuleError::Unknown)?;
            selector.set_command(child, true);
        }
        () => selector.allow_first_arg(entry, own),
    }
    Ok(())
}
