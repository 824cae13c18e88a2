//! The file of users, `aclfile`: a line `user NAME RULES` for each.

use super::describe::describe;
use super::merge::merged;
use super::rule_error::RuleError;
use super::rules::apply;
use super::spaces::has_spaces;
use super::user::User;

/// The users of a file's text. `name` is the file's, for errors.
///
/// # Errors
/// All that is wrong in one line of text, as Redis words it.
pub(crate) fn parse(text: &[u8], name: &str, all_channels: bool) -> Result<Vec<User>, String> {
    let mut users: Vec<User> = Vec::new();
    let mut errors = String::new();
    let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let start = line.iter().position(|byte| !is_blank(byte));
        let end = line.iter().rposition(|byte| !is_blank(byte));
        let (Some(start), Some(end)) = (start, end) else {
            continue;
        };
        let line = line.get(start..=end).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        match user(&words, (name, number), &users, all_channels) {
            Ok(user) => users.push(user),
            Err(text) => errors.push_str(&text),
        }
    }
    match errors.is_empty() {
        true => Ok(users),
        false => Err(format!(
            "{errors}WARNING: ACL errors detected, no change to the previously active ACL rules \
             was performed"
        )),
    }
}

fn user(
    words: &[&[u8]],
    (file, number): (&str, usize),
    users: &[User],
    all_channels: bool,
) -> Result<User, String> {
    let (&[b"user", name, ref rules @ ..], place) = (words, format!("{file}:{number}")) else {
        return Err(format!(
            "{file}:{number} should start with user keyword followed by the username. "
        ));
    };
    let shown = String::from_utf8_lossy(name);
    if has_spaces(name) {
        return Err(format!(
            "'{place}: username '{shown}' contains invalid characters. "
        ));
    }
    if users.iter().any(|user| user.name == name) {
        return Err(format!(
            "WARNING: Duplicate user '{shown}' found on line {number}. "
        ));
    }
    let Ok(rules) = merged(rules) else {
        return Err(format!(
            "{place}: Unmatched parenthesis in selector definition."
        ));
    };
    let mut user = User::new(name, all_channels);
    let mut errors = String::new();
    let mut is_told = false;
    for rule in rules {
        let rule = rule.trim_ascii();
        match apply(&mut user, rule, all_channels) {
            Ok(()) => {}
            // The name of a command is no secret.
            Err(error @ RuleError::Unknown) => {
                let rule = String::from_utf8_lossy(rule);
                errors += &format!("{place}: Error in applying operation '{rule}': {error}. ");
            }
            Err(error) if !is_told => {
                errors += &format!("{place}: {error}. ");
                is_told = true;
            }
            Err(_) => {}
        }
    }
    match errors.is_empty() {
        true => Ok(user),
        false => Err(errors),
    }
}

/// The text of a file of these users.
pub(crate) fn write<'a>(users: impl Iterator<Item = &'a User>) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users {
        for part in [b"user ", &user.name[..], b" ", &describe(user), b"\n"] {
            text.extend_from_slice(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{parse, write};

    /// Goal: users outlive their file. Method: rules of all kinds, among them patterns that look like the end of a selector.
    #[test]
    fn what_is_written_is_read_as_the_same_users() {
        for rules in [
            "on nopass ~a* %R~b* %W~c* &d resetpass >pw >other",
            "+@all -@dangerous +config|get -get",
            "-@all +select|0 +select|1 +@read -@fast",
            "skip-sanitize-payload allkeys allchannels",
            "(+get ~a) (%R~b &c +@write)",
            "(\"~a)\" +get) (\"~b\\\"c\" '~d\\\\' +set)",
            "~a) &(b",
        ] {
            let text = format!("user u {rules}\nuser v off\n");
            let users = parse(text.as_bytes(), "f", false).expect("rules");
            let written = write(users.iter());
            let again = parse(&written, "f", false).expect("what was written");
            assert_eq!(again, users, "{}", String::from_utf8_lossy(&written));
            assert_eq!(write(again.iter()), written);
        }
    }
}
