//! The statements of `update` and `delete`: their shape is looked at before the first one is run.

use drumlin_doc::{Code, Document, Refusal};

use super::call::Call;
use super::insert::check_count;

/// The statements under `field`, which have no other arguments than `known`.
///
/// # Errors
/// `BadValue` for none or too many; `Location40415` for unknown arguments, `CommandNotSupported` for `unserved` ones.
pub(super) fn statements<'a>(
    call: &Call<'a>,
    field: &str,
    known: &[&str],
    unserved: &[&str],
) -> Result<Vec<Document<'a>>, Refusal> {
    let all = call.documents(field)?;
    check_count(all.len())?;
    for name in all.iter().flat_map(|it| it.iter()).map(|it| it.name_str()) {
        if unserved.contains(&name) {
            let text = format!("the argument '{name}' of {}", call.name);
            return Err(Refusal::not_supported(text));
        }
        if !known.contains(&name) {
            let text = format!(
                "BSON field '{}.{field}.{name}' is an unknown field.",
                call.name
            );
            return Err(Refusal::new(Code::UnknownField, text));
        }
    }
    Ok(all)
}
