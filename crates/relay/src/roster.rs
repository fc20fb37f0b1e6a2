//! The destinations that a relay works with: those it was started with, and those kept as data.
//!
//! A destination of the configuration wins over an endpoint of the same name. What cannot be used in the table blocks
//! its own endpoint, whose events are kept, and no other.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use postbox_core::delivery::DestinationName;
use postbox_core::destination::Destination;
use postbox_core::endpoint::{
    Blocked, BlockedDestination, Endpoint, EndpointSet, EndpointSettings, Settings,
};
use postbox_core::outcome::Outcome;
use postbox_core::route::Route;
use postbox_core::sink::{Attempt, Sink};

use crate::config::Binding;

/// Makes sinks for endpoints kept as data. Called on the relay's main task, so it must neither block nor connect.
pub trait Endpoints: fmt::Debug + Send + Sync {
    /// The way to send to `endpoint`, whose settings are `settings`.
    ///
    /// # Errors
    /// Why it cannot be sent to, in one line without a secret.
    fn sink(&self, endpoint: &Endpoint, settings: &EndpointSettings) -> Result<Arc<dyn Sink>, String>;
}

/// Where the engine's numbers lead.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: DestinationName,
    pub(crate) sink: Arc<dyn Sink>,
}

/// An endpoint as it was last taken over.
struct Taken {
    endpoint: Endpoint,
    /// `None` while nothing is known of its route.
    destination: Option<Destination>,
    sink: Arc<dyn Sink>,
    /// Why it cannot be used.
    trouble: Option<String>,
}

pub(crate) struct Roster {
    configured: Vec<Binding>,
    endpoints: Option<Arc<dyn Endpoints>>,
    /// Attempts must be shorter than this to fit into the lease.
    longest_attempt: Duration,
    version: i64,
    taken: HashMap<DestinationName, Taken>,
    /// By the engine's numbers: the configured ones first, then endpoints as they came.
    places: Vec<Place>,
    numbers: HashMap<DestinationName, usize>,
    /// What answered that it is gone, until that is recorded.
    gone: HashMap<DestinationName, String>,
    /// Endpoints that are not used, although sending under their name goes on.
    shadowed: HashSet<DestinationName>,
    /// What there is to know of the configured ones' switches.
    switched: HashMap<DestinationName, String>,
}

impl Roster {
    pub(crate) fn new(
        configured: Vec<Binding>,
        endpoints: Option<Arc<dyn Endpoints>>,
        longest_attempt: Duration,
    ) -> Self {
        Self {
            configured,
            endpoints,
            longest_attempt,
            version: -1,
            taken: HashMap::new(),
            places: Vec::new(),
            numbers: HashMap::new(),
            gone: HashMap::new(),
            shadowed: HashSet::new(),
            switched: HashMap::new(),
        }
    }

    /// Version of the set that was taken over last; below 0 before the first.
    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// Where the engine's number leads.
    pub(crate) fn place(&self, number: usize) -> &Place {
        &self.places[number]
    }

    /// Takes a set over. What the engine has to know of it: all destinations, in an order that gives each the number
    /// under which [`Roster::place`] finds it.
    pub(crate) fn take_over(&mut self, set: EndpointSet) -> Vec<Destination> {
        self.version = set.version;
        let configured: HashSet<DestinationName> =
            self.configured.iter().map(|binding| binding.destination.name.clone()).collect();
        let mut before = std::mem::take(&mut self.taken);
        let mut switched = HashMap::new();
        let mut shadowed = HashSet::new();
        for endpoint in set.endpoints {
            let name = endpoint.name.clone();
            if configured.contains(&name) {
                if endpoint.settings != Settings::Switch && self.endpoints.is_some() {
                    shadowed.insert(name.clone());
                }
                if let Some(reason) = endpoint.disabled {
                    switched.insert(name, reason);
                }
            } else if let Some(factory) = &self.endpoints
                && endpoint.settings != Settings::Switch
            {
                let taken = match before.remove(&name) {
                    Some(known) if known.endpoint == endpoint => known,
                    known => take(&**factory, self.longest_attempt, endpoint, known),
                };
                self.taken.insert(name, taken);
            }
        }
        for name in shadowed.difference(&self.shadowed) {
            tracing::warn!(destination = %name, "{SHADOWED}");
        }
        for name in before.keys() {
            tracing::info!(destination = %name, "endpoint removed");
            if let Some(&number) = self.numbers.get(name) {
                self.places[number].sink = Arc::new(Nowhere);
            }
        }
        self.shadowed = shadowed;
        self.switched = switched;
        self.destinations()
    }

    /// Everything for the engine, with a place for each that is new.
    fn destinations(&mut self) -> Vec<Destination> {
        let off =
            |name: &DestinationName, reason: Option<&String>| reason.or_else(|| self.gone.get(name)).cloned();
        let mut list: Vec<(Destination, Arc<dyn Sink>)> = Vec::new();
        for Binding { destination, sink } in &self.configured {
            let disabled = off(&destination.name, self.switched.get(&destination.name));
            list.push((Destination { disabled, ..destination.clone() }, Arc::clone(sink)));
        }
        let mut endpoints: Vec<&Taken> = self.taken.values().collect();
        endpoints.sort_by(|a, b| a.endpoint.name.cmp(&b.endpoint.name));
        for Taken { endpoint, destination, sink, trouble } in endpoints {
            if let Some(destination) = destination {
                let disabled = off(&endpoint.name, trouble.as_ref().or(endpoint.disabled.as_ref()));
                list.push((Destination { disabled, ..destination.clone() }, Arc::clone(sink)));
            }
        }
        let places = &mut self.places;
        for (destination, sink) in &list {
            let number = *self.numbers.entry(destination.name.clone()).or_insert(places.len());
            let place = Place { name: destination.name.clone(), sink: Arc::clone(sink) };
            match places.get_mut(number) {
                Some(known) => *known = place,
                None => places.push(place),
            }
        }
        list.into_iter().map(|(destination, _)| destination).collect()
    }

    /// A destination answered that it is gone; it stays off whatever is read before that is recorded. `false` when it
    /// does not exist any more, so that there is nothing to record.
    pub(crate) fn note_gone(&mut self, name: &DestinationName, reason: String) -> bool {
        let exists = self.taken.contains_key(name)
            || self.configured.iter().any(|binding| binding.destination.name == *name);
        if exists {
            self.gone.insert(name.clone(), reason);
        }
        exists
    }

    /// One that is gone and not recorded yet.
    pub(crate) fn next_gone(&self) -> Option<(DestinationName, String)> {
        self.gone.iter().next().map(|(name, reason)| (name.clone(), reason.clone()))
    }

    /// That it is gone was recorded: from now on the table decides.
    pub(crate) fn gone_recorded(&mut self, name: &DestinationName) {
        self.gone.remove(name);
    }

    /// What to tell of destinations that nothing is sent to, given what the engine says of them.
    pub(crate) fn blocked(&self, engine: &[(DestinationName, String)]) -> Blocked {
        let told = |destination: &DestinationName, reason: String| BlockedDestination {
            destination: destination.to_string(),
            reason,
        };
        let troubled = self.taken.iter().filter_map(|(name, taken)| Some(told(name, taken.trouble.clone()?)));
        let shadowed = self.shadowed.iter().map(|name| told(name, SHADOWED.to_owned()));
        let own = |name: &DestinationName| self.taken.get(name).is_some_and(|taken| taken.trouble.is_some());
        let others = engine.iter().filter(|(name, _)| !own(name));
        let others = others.map(|(name, reason)| told(name, reason.clone()));
        Blocked::of(troubled.chain(shadowed).chain(others).collect())
    }
}

const SHADOWED: &str = "the endpoint of this name is not used: the configuration file describes a destination of the \
                        same name, which is";

/// Makes what is needed to send to `endpoint`; of the one `known` before, the route serves when the new one cannot be
/// read.
fn take(
    factory: &dyn Endpoints,
    longest_attempt: Duration,
    endpoint: Endpoint,
    known: Option<Taken>,
) -> Taken {
    let (name, known_before) = (endpoint.name.clone(), known.is_some());
    let made = match &endpoint.settings {
        Settings::Switch => Err("it has no settings".to_owned()),
        Settings::Unusable { reason, .. } => Err(reason.clone()),
        Settings::Usable(_) if endpoint.secrets_expired => {
            Err("every secret of it has expired: add one with `postbox destinations rotate-secret`"
                .to_owned())
        }
        Settings::Usable(settings) if settings.timeout >= longest_attempt => Err(format!(
            "`timeout` is {:?}, and an attempt must be shorter than {longest_attempt:?} to fit into the relay's lease",
            settings.timeout
        )),
        Settings::Usable(settings) => factory.sink(&endpoint, settings),
    };
    let destination = match &endpoint.settings {
        Settings::Usable(settings) => Some(settings.destination(name.clone())),
        Settings::Unusable { route: Some(route), .. } => {
            let known = known.and_then(|known| known.destination);
            let before = known.unwrap_or_else(|| Destination::new(name.clone(), Route::default()));
            Some(Destination { route: route.clone(), ..before })
        }
        Settings::Unusable { route: None, .. } | Settings::Switch => {
            known.and_then(|known| known.destination)
        }
    };
    match made {
        Ok(sink) => {
            let disabled = endpoint.disabled.as_deref();
            match known_before {
                true => tracing::info!(destination = %name, disabled, "endpoint changed"),
                false => tracing::debug!(destination = %name, disabled, "endpoint taken over"),
            }
            Taken { endpoint, destination, sink, trouble: None }
        }
        Err(reason) => {
            let kept = match destination {
                Some(_) => "its events are kept until then",
                None => {
                    "and as it is not clear which events are meant for it, none are kept for it until then"
                }
            };
            let trouble = format!("cannot be used until its row is corrected, {kept}: {reason}");
            tracing::warn!(destination = %name, reason = %trouble, "nothing is sent to an endpoint");
            Taken { endpoint, destination, sink: Arc::new(Nowhere), trouble: Some(trouble) }
        }
    }
}

/// Stands where there is no way to send.
struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    async fn deliver(&self, _attempt: &Attempt) -> Outcome {
        Outcome::NotStarted("the destination cannot be sent to at present".into())
    }
}

#[cfg(test)]
mod tests;
