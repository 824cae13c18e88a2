//! A client: it writes, compares each reply with what it knows, and remembers what was not answered.

use drumlin_base::rng::Rng;
use drumlin_doc::{Builder, Document, Value};

use crate::documents::Doc;
use crate::session::{Session, batch_of, whole};
use crate::state::{Order, State, Step, shared};
use crate::writes;

/// A command, and what it is to do.
pub(crate) struct Call {
    pub(crate) database: String,
    pub(crate) command: Builder,
    pub(crate) steps: Vec<Step>,
    pub(crate) order: Order,
    pub(crate) expected: Expected,
}

/// What a reply has to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) n: Option<i64>,
    pub(crate) modified: Option<i64>,
    /// Statements that are refused, and by which code.
    pub(crate) errors: Vec<(i64, i64)>,
    /// The document of `findAndModify`, or none.
    pub(crate) value: Option<Option<Doc>>,
    /// The documents of `find`.
    pub(crate) batch: Option<Vec<Doc>>,
}

pub(crate) struct Client {
    pub(crate) number: i64,
    pub(crate) rng: Rng,
    pub(crate) state: State,
    /// What was sent and not answered.
    pub(crate) unanswered: Option<(Vec<Step>, Order)>,
    /// Numbers of documents that were given.
    pub(crate) given: i64,
    pub(crate) acknowledged: u64,
    pub(crate) cut_off: u64,
    /// Commands that were cut off and had done something.
    pub(crate) there_unacknowledged: u64,
}

impl Client {
    pub(crate) fn new(number: i64, seed: u64) -> Self {
        let mut state = State::default();
        state.content(&shared());
        Self {
            number,
            rng: Rng::new(seed),
            state,
            unanswered: None,
            given: 0,
            acknowledged: 0,
            cut_off: 0,
            there_unacknowledged: 0,
        }
    }

    /// Writes until the server is gone.
    pub(crate) fn write_on(&mut self, mut session: Session) {
        loop {
            let call = writes::next(self);
            let shown = shown(call.command.clone());
            let Some(reply) = session.ask(&call.database, call.command) else {
                self.unanswered = Some((call.steps, call.order));
                self.cut_off += 1;
                return;
            };
            call.expected.check(&reply, &shown);
            call.steps.iter().for_each(|step| self.state.apply(step));
            self.acknowledged += 1;
        }
    }
}

fn shown(command: Builder) -> String {
    drumlin_doc::show(Document(&command.finish()).as_value())
}

impl Expected {
    fn check(&self, reply: &[u8], command: &str) {
        let said = drumlin_doc::show(Document(reply).as_value());
        let told = || format!("{said}\nto {command}\nexpected {self:?}");
        assert_eq!(whole(reply, "ok"), Some(1), "{}", told());
        assert!(
            self.n.is_none() || whole(reply, "n") == self.n,
            "{}",
            told()
        );
        assert!(
            self.modified.is_none() || whole(reply, "nModified") == self.modified,
            "{}",
            told()
        );
        let errors = Document(reply).get("writeErrors").and_then(Value::as_array);
        let errors: Vec<_> = errors
            .iter()
            .flat_map(|errors| errors.iter())
            .map(|error| {
                let number = |name| whole(error.value.bytes, name).expect("a number");
                (number("index"), number("code"))
            })
            .collect();
        assert_eq!(errors, self.errors, "{}", told());
        if let Some(wanted) = &self.value {
            let value = Document(reply).get("value").expect("a value");
            let value = value.as_document().map(|document| Doc::read(document.0));
            assert_eq!(value, *wanted, "{}", told());
        }
        if let Some(wanted) = &self.batch {
            let batch: Vec<Doc> = batch_of(reply).iter().map(|it| Doc::read(it)).collect();
            assert_eq!(batch, *wanted, "{}", told());
        }
    }
}
