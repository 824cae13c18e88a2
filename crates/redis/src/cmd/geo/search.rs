//! Searches around a place.

use drumlin_redis_store::types::geo::{self, Extent, Found, Point, Shape};
use drumlin_redis_store::types::zset::{self, Scored};
use drumlin_redis_store::{Failure, Kind, Outcome};

use super::args::{length, point, reply_distance, reply_point, unit_m};
use crate::call::{Call, SYNTAX};
use crate::double;

const NO_MEMBER: Failure = Failure::refused("ERR could not decode requested zset member");
const NO_COUNT: Failure = Failure::refused("ERR COUNT must be > 0");
const ANY_ALONE: Failure = Failure::refused("ERR the ANY argument requires COUNT argument");
const NEGATIVE_RADIUS: Failure = Failure::refused("ERR radius cannot be negative");
const NEGATIVE_BOX: Failure = Failure::refused("ERR height or width cannot be negative");
const RADIUS: &str = "ERR need numeric radius";
const WIDTH: &str = "ERR need numeric width";
const HEIGHT: &str = "ERR need numeric height";

/// The command that searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// GEORADIUS and GEORADIUSBYMEMBER, which may store.
    Radius,
    /// Those that only read.
    RadiusOnly,
    Search,
    SearchStore,
}

impl Name {
    fn is_search(self) -> bool {
        matches!(self, Self::Search | Self::SearchStore)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Near,
    Far,
}

/// The place that a search is around.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Center {
    Point(Point),
    Member(Point),
    /// A member of no key.
    Nowhere,
}

impl Center {
    fn point(self) -> Point {
        match self {
            Self::Point(point) | Self::Member(point) => point,
            Self::Nowhere => Point::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Options<'a> {
    with_distance: bool,
    with_hash: bool,
    with_point: bool,
    /// `COUNT`; 0 is none.
    count: usize,
    /// `ANY`
    any: bool,
    order: Option<Order>,
    /// The key to store at.
    store: Option<&'a [u8]>,
    stores_distance: bool,
    center: Option<Center>,
    /// The extent, and metres of its unit.
    extent: Option<(Extent, f64)>,
}

/// The place of the member that is argument `at` of the key `source`.
fn member(call: &Call<'_, '_>, source: &[u8], at: usize) -> Outcome<Center> {
    let score = zset::score(call.keys, source, call.arg(at))?;
    let score = score.ok_or(NO_MEMBER)?;
    Ok(Center::Member(geo::point_of(score)))
}

/// Arguments `at` and the next as a radius and its unit.
fn radius(call: &Call<'_, '_>, at: usize) -> Outcome<(Extent, f64)> {
    let radius = length(call, at, RADIUS)?;
    if radius < 0.0 {
        return Err(NEGATIVE_RADIUS);
    }
    Ok((Extent::Radius(radius), unit_m(call, at + 1)?))
}

/// Arguments from `at` on as a width, a height and their unit.
fn sides(call: &Call<'_, '_>, at: usize) -> Outcome<(Extent, f64)> {
    let (width, height) = (length(call, at, WIDTH)?, length(call, at + 1, HEIGHT)?);
    if width < 0.0 || height < 0.0 {
        return Err(NEGATIVE_BOX);
    }
    Ok((Extent::Box { width, height }, unit_m(call, at + 2)?))
}

impl<'a> Options<'a> {
    /// Reads the options from argument `at` on. `source` is the key that is searched, if there is one.
    fn read(
        &mut self,
        call: &Call<'a, '_>,
        mut at: usize,
        name: Name,
        source: Option<&[u8]>,
    ) -> Outcome<()> {
        while at < call.len() {
            at += match self.word(call, at) {
                true => 1,
                false => match self.result(call, at, name)? {
                    0 if name.is_search() => self.place(call, at, source)?,
                    0 => return Err(SYNTAX),
                    taken => taken,
                },
            };
        }
        Ok(())
    }

    /// Whether argument `at` is an option of one word that all commands take; it is noted.
    fn word(&mut self, call: &Call<'_, '_>, at: usize) -> bool {
        match () {
            () if call.is(at, "withdist") => self.with_distance = true,
            () if call.is(at, "withhash") => self.with_hash = true,
            () if call.is(at, "withcoord") => self.with_point = true,
            () if call.is(at, "any") => self.any = true,
            () if call.is(at, "asc") => self.order = Some(Order::Near),
            () if call.is(at, "desc") => self.order = Some(Order::Far),
            () => return false,
        }
        true
    }

    /// Notes what becomes of the members; how many arguments say so, 0 if that is not what is there.
    fn result(&mut self, call: &Call<'a, '_>, at: usize, name: Name) -> Outcome<usize> {
        let remaining = call.len() - at - 1;
        let stores = call.is(at, "store") || call.is(at, "storedist");
        if call.is(at, "count") && remaining >= 1 {
            let count = call.integer(at + 1)?;
            let count = usize::try_from(count).ok().filter(|count| *count > 0);
            self.count = count.ok_or(NO_COUNT)?;
            return Ok(2);
        }
        if stores && remaining >= 1 && name == Name::Radius {
            self.store = Some(call.arg(at + 1));
            self.stores_distance = call.is(at, "storedist");
            return Ok(2);
        }
        if call.is(at, "storedist") && name == Name::SearchStore {
            self.stores_distance = true;
            return Ok(1);
        }
        Ok(0)
    }

    /// Notes what is searched; how many arguments say so.
    fn place(&mut self, call: &Call<'a, '_>, at: usize, source: Option<&[u8]>) -> Outcome<usize> {
        let remaining = call.len() - at - 1;
        let is_point = matches!(self.center, Some(Center::Point(_)));
        let is_member = self.center.is_some() && !is_point;
        let is_box = matches!(self.extent, Some((Extent::Box { .. }, _)));
        let is_circle = self.extent.is_some() && !is_box;
        if call.is(at, "frommember") && remaining >= 1 && !is_point {
            self.center = Some(match source {
                Some(source) => member(call, source, at + 1)?,
                None => Center::Nowhere,
            });
            return Ok(2);
        }
        if call.is(at, "fromlonlat") && remaining >= 2 && !is_member {
            self.center = Some(Center::Point(point(call, at + 1)?));
            return Ok(3);
        }
        if call.is(at, "byradius") && remaining >= 2 && !is_box {
            self.extent = Some(radius(call, at + 1)?);
            return Ok(3);
        }
        if call.is(at, "bybox") && remaining >= 3 && !is_circle {
            self.extent = Some(sides(call, at + 1)?);
            return Ok(4);
        }
        Err(SYNTAX)
    }

    /// Whether they go together.
    fn check(&self, call: &Call<'_, '_>, name: Name) -> Outcome<()> {
        if self.store.is_some() && (self.with_distance || self.with_hash || self.with_point) {
            let what = match name {
                Name::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Failure::because(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let exactly_one = |of: &str| {
            let name = String::from_utf8_lossy(call.arg(0)).into_owned();
            Failure::because(format!(
                "ERR exactly one of {of} can be specified for {name}"
            ))
        };
        if name.is_search() && self.center.is_none() {
            return Err(exactly_one("FROMMEMBER or FROMLONLAT"));
        }
        if name.is_search() && self.extent.is_none() {
            return Err(exactly_one("BYRADIUS and BYBOX"));
        }
        match self.any && self.count == 0 {
            true => Err(ANY_ALONE),
            false => Ok(()),
        }
    }
}

pub(super) fn georadius(call: &mut Call<'_, '_>) -> Outcome<()> {
    around_point(call, Name::Radius)
}

pub(super) fn georadius_ro(call: &mut Call<'_, '_>) -> Outcome<()> {
    around_point(call, Name::RadiusOnly)
}

fn around_point(call: &mut Call<'_, '_>, name: Name) -> Outcome<()> {
    let source = source(call, 1)?;
    let mut options = Options {
        center: Some(Center::Point(point(call, 2)?)),
        extent: Some(radius(call, 4)?),
        ..Options::default()
    };
    options.read(call, 6, name, source)?;
    options.check(call, name)?;
    run(call, source, &options, name)
}

pub(super) fn georadiusbymember(call: &mut Call<'_, '_>) -> Outcome<()> {
    around_member(call, Name::Radius)
}

pub(super) fn georadiusbymember_ro(call: &mut Call<'_, '_>) -> Outcome<()> {
    around_member(call, Name::RadiusOnly)
}

fn around_member(call: &mut Call<'_, '_>, name: Name) -> Outcome<()> {
    let source = source(call, 1)?;
    let mut options = Options::default();
    // Without a key the radius is not looked at.
    if let Some(key) = source {
        options.center = Some(member(call, key, 2)?);
        options.extent = Some(radius(call, 3)?);
    }
    options.read(call, 5, name, source)?;
    options.check(call, name)?;
    run(call, source, &options, name)
}

pub(super) fn geosearch(call: &mut Call<'_, '_>) -> Outcome<()> {
    let source = source(call, 1)?;
    let mut options = Options::default();
    options.read(call, 2, Name::Search, source)?;
    options.check(call, Name::Search)?;
    run(call, source, &options, Name::Search)
}

pub(super) fn geosearchstore(call: &mut Call<'_, '_>) -> Outcome<()> {
    let source = source(call, 2)?;
    let mut options = Options {
        store: Some(call.arg(1)),
        ..Options::default()
    };
    options.read(call, 3, Name::SearchStore, source)?;
    options.check(call, Name::SearchStore)?;
    run(call, source, &options, Name::SearchStore)
}

/// Argument `at`, if it is the key of a sorted set.
fn source<'a>(call: &Call<'a, '_>, at: usize) -> Outcome<Option<&'a [u8]>> {
    let key = call.arg(at);
    let found = call.keys.lookup_as(key, Kind::SortedSet)?;
    Ok(found.map(|_| key))
}

fn run(
    call: &mut Call<'_, '_>,
    source: Option<&[u8]>,
    options: &Options<'_>,
    name: Name,
) -> Outcome<()> {
    let place = options.center.zip(options.extent);
    let (found, unit_m) = match source.zip(place) {
        Some((source, (center, (extent, unit_m)))) => {
            let shape = Shape {
                center: center.point(),
                extent,
                unit_m,
            };
            (find(call, source, &shape, options)?, unit_m)
        }
        None => (Vec::new(), 1.0),
    };
    match options.store {
        Some(to) => store(call, to, found, options, (name, unit_m)),
        None => {
            reply(call, &found, options, unit_m);
            Ok(())
        }
    }
}

/// The members that are wanted, in their order.
fn find(
    call: &Call<'_, '_>,
    source: &[u8],
    shape: &Shape,
    options: &Options<'_>,
) -> Outcome<Vec<Found>> {
    let wanted = if options.count == 0 {
        usize::MAX
    } else {
        options.count
    };
    let most = if options.any { wanted } else { usize::MAX };
    let mut found = geo::search(call.keys, source, shape, most)?;
    // The nearest are wanted of a count, unless any will do.
    let nearest = options.count > 0 && !options.any;
    match options.order.or(nearest.then_some(Order::Near)) {
        None => {}
        Some(Order::Near) => {
            found.sort_by(|one, other| one.distance_m.total_cmp(&other.distance_m));
        }
        Some(Order::Far) => {
            found.sort_by(|one, other| other.distance_m.total_cmp(&one.distance_m));
        }
    }
    found.truncate(wanted);
    Ok(found)
}

fn store(
    call: &mut Call<'_, '_>,
    to: &[u8],
    found: Vec<Found>,
    options: &Options<'_>,
    (name, unit_m): (Name, f64),
) -> Outcome<()> {
    let item = |found: Found| Scored {
        score: match options.stores_distance {
            true => found.distance_m / unit_m,
            false => found.score,
        },
        member: found.member,
    };
    let items: Vec<_> = found.into_iter().map(item).collect();
    let event = match name.is_search() {
        true => "geosearchstore",
        false => "georadiusstore",
    };
    tell_stored(call, to, &items);
    let stored = zset::store_unordered(call.keys, to, items, event)?;
    call.reply
        .integer(i64::try_from(stored).unwrap_or(i64::MAX));
    Ok(())
}

/// Members of a command for replicas.
const TOLD_MAX: usize = 512;

/// Tells replicas what is stored: others at the same distance could be in its place.
fn tell_stored(call: &mut Call<'_, '_>, to: &[u8], items: &[Scored]) {
    if !call.collects {
        return;
    }
    call.tell_replicas(&[b"DEL", to]);
    for items in items.chunks(TOLD_MAX) {
        let scores: Vec<String> = items.iter().map(|item| double::print(item.score)).collect();
        let mut command = vec![b"ZADD".as_slice(), to];
        for (score, item) in scores.iter().zip(items) {
            command.extend([score.as_bytes(), &item.member]);
        }
        call.tell_replicas(&command);
    }
}

fn reply(call: &mut Call<'_, '_>, found: &[Found], options: &Options<'_>, unit_m: f64) {
    let with = [options.with_distance, options.with_hash, options.with_point];
    let with = with.into_iter().filter(|with| *with).count();
    call.reply.array(found.len());
    for found in found {
        if with > 0 {
            call.reply.array(with + 1);
        }
        call.reply.bulk(&found.member);
        if options.with_distance {
            reply_distance(call, found.distance_m / unit_m);
        }
        if options.with_hash {
            call.reply.integer(found.score as i64);
        }
        if options.with_point {
            reply_point(call, found.point);
        }
    }
}
