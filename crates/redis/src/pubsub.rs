//! Channels and patterns, and who subscribed to them.

use std::collections::{BTreeMap, BTreeSet};

use drumlin_resp::ReplyWriter;

use crate::clients::Clients;
use crate::glob;

/// Subscribers by channel and by pattern.
#[derive(Debug, Default)]
pub(crate) struct PubSub {
    channels: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    patterns: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    shard_channels: BTreeMap<Vec<u8>, BTreeSet<u64>>,
}

/// Channels or patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Channel,
    Pattern,
    /// Channels of one shard of a cluster, which have a table of their own.
    Shard,
}

impl PubSub {
    fn table(&mut self, subject: Subject) -> &mut BTreeMap<Vec<u8>, BTreeSet<u64>> {
        match subject {
            Subject::Channel => &mut self.channels,
            Subject::Pattern => &mut self.patterns,
            Subject::Shard => &mut self.shard_channels,
        }
    }

    /// Subscribes a client.
    pub(crate) fn subscribe(&mut self, subject: Subject, name: &[u8], client: u64) {
        self.table(subject)
            .entry(name.to_vec())
            .or_default()
            .insert(client);
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, subject: Subject, name: &[u8], client: u64) {
        let table = self.table(subject);
        if let Some(clients) = table.get_mut(name) {
            clients.remove(&client);
            if clients.is_empty() {
                table.remove(name);
            }
        }
    }

    /// Sends `message` to the subscribers of `channel` and of the patterns that match it; how many got it. A client
    /// that has both gets it twice.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8], clients: &mut Clients) -> usize {
        let mut sent = 0;
        for client in self.channels.get(channel).into_iter().flatten() {
            sent += usize::from(clients.send(*client, |out| {
                out.push(3);
                out.bulk(b"message");
                out.bulk(channel);
                out.bulk(message);
            }));
        }
        for (pattern, subscribers) in &self.patterns {
            if !glob::matches(pattern, channel) {
                continue;
            }
            for client in subscribers {
                sent += usize::from(clients.send(*client, |out: &mut ReplyWriter| {
                    out.push(4);
                    out.bulk(b"pmessage");
                    out.bulk(pattern);
                    out.bulk(channel);
                    out.bulk(message);
                }));
            }
        }
        sent
    }

    /// How many would get a message of `channel`.
    pub(crate) fn receivers(&self, channel: &[u8]) -> usize {
        let fits = |(pattern, _): &(&Vec<u8>, _)| glob::matches(pattern, channel);
        let by_pattern = self.patterns.iter().filter(fits);
        let by_pattern: usize = by_pattern.map(|(_, clients)| clients.len()).sum();
        self.subscribers(channel) + by_pattern
    }

    /// Sends `message` to the subscribers of a shard channel; how many got it.
    pub(crate) fn publish_to_shard(
        &self,
        channel: &[u8],
        message: &[u8],
        clients: &mut Clients,
    ) -> usize {
        let subscribers = self.shard_channels.get(channel).into_iter().flatten();
        let sent = subscribers.map(|client| {
            usize::from(clients.send(*client, |out| {
                out.push(3);
                out.bulk(b"smessage");
                out.bulk(channel);
                out.bulk(message);
            }))
        });
        sent.sum()
    }

    /// Shard channels that have subscribers.
    pub(crate) fn shard_channels(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let channels = self.shard_channels.iter();
        channels.map(|(name, clients)| (name.as_slice(), clients.len()))
    }

    /// How many subscribe to a shard channel.
    pub(crate) fn shard_subscribers(&self, channel: &[u8]) -> usize {
        self.shard_channels.get(channel).map_or(0, BTreeSet::len)
    }

    /// Channels that have subscribers.
    pub(crate) fn channels(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.channels
            .iter()
            .map(|(name, clients)| (name.as_slice(), clients.len()))
    }

    /// How many subscribe to a channel.
    pub(crate) fn subscribers(&self, channel: &[u8]) -> usize {
        self.channels.get(channel).map_or(0, BTreeSet::len)
    }

    /// How many patterns there are.
    pub(crate) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }
}
