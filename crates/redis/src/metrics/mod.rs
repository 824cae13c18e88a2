//! `/metrics`: the counters of the server and of the engine as Prometheus reads them, over HTTP on a port of their own.

pub(crate) mod figures;
pub(crate) mod http;
pub(crate) mod page;
pub(crate) mod powers;
pub(crate) mod scrape;
pub(crate) mod scraper;
pub(crate) mod text;
