//! The layers of isolation as data: which ones a machine offers, and which ones a run had.

use std::fmt;

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

use crate::spawn::{Network, Strength};

/// The schema of [`Layers`] as JSON.
const STATUS_SCHEMA: &str = "crucible-sandbox-status-v1";
/// The schema of [`IsolationReceipt`] as JSON.
const RECEIPT_SCHEMA: &str = "crucible-isolation-v1";

/// A layer of isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// User, mount, pid, ipc, uts and cgroup namespaces: a read-only root, private `/tmp`, `/dev` and
    /// `/proc`, no access to other processes, and no process that outlives the run.
    Namespaces,
    /// No access to the network.
    NetworkCut,
    /// The user's secrets and the caller's masked paths are covered.
    Masks,
    /// Landlock: a second mechanism that permits writes only in granted directories.
    Landlock,
    /// A seccomp filter that refuses system calls that no build or test needs.
    Seccomp,
    /// No core dumps; limits on file sizes, processes and descriptors.
    ResourceLimits,
}

impl Layer {
    /// Every layer, outermost first.
    pub const ALL: [Self; 6] = [
        Self::Namespaces,
        Self::NetworkCut,
        Self::Masks,
        Self::Landlock,
        Self::Seccomp,
        Self::ResourceLimits,
    ];
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::NetworkCut => "network-cut",
            Self::Masks => "masks",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::ResourceLimits => "resource-limits",
        })
    }
}

/// A layer that was in force, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveLayer {
    /// Which.
    pub layer: Layer,
    /// The mechanism, such as `bubblewrap 0.8.0` or `abi 7`.
    pub detail: String,
}

/// A layer that was not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingLayer {
    /// Which.
    pub layer: Layer,
    /// The reason, for people.
    pub reason: String,
}

/// The layers that this machine offers, determined by trying them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Names this shape and its version.
    pub schema_version: String,
    /// Every layer, outermost first.
    pub layers: Vec<LayerStatus>,
}

/// Whether one layer works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerStatus {
    /// Which.
    pub layer: Layer,
    /// Whether it worked when tried.
    pub state: LayerState,
    /// The mechanism, or the reason why it does not work.
    pub detail: String,
}

/// Whether a layer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerState {
    /// It was tried and works.
    Available,
    /// It was tried and failed, or cannot be tried.
    Missing,
}

impl MissingLayer {
    /// Returns every layer as missing, for one reason.
    pub(crate) fn all(reason: &str) -> Vec<Self> {
        Layer::ALL
            .map(|layer| Self {
                layer,
                reason: reason.to_owned(),
            })
            .to_vec()
    }
}

impl Layers {
    /// Creates the status of every layer from a trial; a layer in neither list is missing.
    pub(crate) fn from_trial(reached: &[ActiveLayer], missing: &[MissingLayer]) -> Self {
        let status = |layer: Layer| {
            if let Some(found) = reached.iter().find(|found| found.layer == layer) {
                return LayerStatus {
                    layer,
                    state: LayerState::Available,
                    detail: found.detail.clone(),
                };
            }
            let reason = missing
                .iter()
                .find(|missing_layer| missing_layer.layer == layer)
                .map(|missing_layer| missing_layer.reason.clone());
            let detail = reason.unwrap_or_else(|| "it was not reached when tried".to_owned());
            LayerStatus {
                layer,
                state: LayerState::Missing,
                detail,
            }
        };
        Self {
            schema_version: STATUS_SCHEMA.to_owned(),
            layers: Layer::ALL.map(status).to_vec(),
        }
    }

    /// Returns whether this layer works here.
    #[must_use]
    pub fn state(&self, layer: Layer) -> LayerState {
        let found = self.layers.iter().find(|status| status.layer == layer);
        found.map_or(LayerState::Missing, |status| status.state)
    }

    /// Returns the layers that do not work here, with the reasons.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingLayer> {
        let missing_layers = self
            .layers
            .iter()
            .filter(|status| status.state == LayerState::Missing);
        missing_layers
            .map(|status| MissingLayer {
                layer: status.layer,
                reason: status.detail.clone(),
            })
            .collect()
    }

    /// Judges whether this machine satisfies a strength. A missing layer is an error if the sandbox is required and a
    /// warning if it is best effort. A sandbox that is off is one warning.
    #[must_use]
    pub fn verdict(&self, strength: Strength) -> Verdict {
        let found = |layer: MissingLayer| {
            let code = Code::new("sandbox-layer-missing");
            let hint = format!("Not available here: {}.", layer.reason);
            match strength {
                Strength::Required => Finding::error(code, layer.layer.to_string(), hint),
                Strength::BestEffort | Strength::Off => {
                    Finding::warning(code, layer.layer.to_string(), hint)
                }
            }
        };
        if strength == Strength::Off {
            let hint = "Code from the repository runs with your rights; set [sandbox] strength to best-effort or required.";
            return Verdict::new(vec![Finding::warning(
                Code::new("sandbox-off"),
                "sandbox",
                hint,
            )]);
        }
        Verdict::new(self.missing().into_iter().map(found).collect())
    }
}

/// The confinement that a caller requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedConfinement {
    /// None, because the program is trusted.
    Trusted,
    /// Every layer, or no run.
    Required,
    /// Every layer that the machine offers.
    BestEffort,
    /// None, because the sandbox is off.
    Off,
}

impl From<Strength> for RequestedConfinement {
    fn from(strength: Strength) -> Self {
        match strength {
            Strength::Required => Self::Required,
            Strength::BestEffort => Self::BestEffort,
            Strength::Off => Self::Off,
        }
    }
}

/// How much of the requested isolation was in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationLevel {
    /// Every requested layer.
    Full,
    /// Some layers; the missing ones are named.
    Partial,
    /// None.
    None,
}

impl IsolationLevel {
    /// The level as JSON spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// The isolation of one run. The stage that sets it up writes this before the program starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReceipt {
    /// Names this shape and its version.
    pub schema_version: String,
    /// The requested confinement.
    pub requested: RequestedConfinement,
    /// The requested network access.
    pub network: Network,
    /// How much of it was in force.
    pub level: IsolationLevel,
    /// The layers in force.
    pub reached: Vec<ActiveLayer>,
    /// The layers not in force.
    pub missing: Vec<MissingLayer>,
    /// What limited memory and processes.
    #[serde(default)]
    pub resources: ResourceLevel,
}

/// What limits the memory and the processes of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceLevel {
    /// A control group, for the program and its descendants together.
    Cgroup,
    /// Limits on each process (`setrlimit`).
    Rlimit,
    /// Nothing, or not recorded.
    #[default]
    None,
}

impl fmt::Display for ResourceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup",
            Self::Rlimit => "rlimit",
            Self::None => "none",
        })
    }
}

impl IsolationReceipt {
    /// Creates the receipt of a run; its level follows from the two lists.
    pub(crate) fn new(
        requested: RequestedConfinement,
        network: Network,
        reached: Vec<ActiveLayer>,
        missing: Vec<MissingLayer>,
    ) -> Self {
        let level = match (reached.is_empty(), missing.is_empty()) {
            (true, _) => IsolationLevel::None,
            (false, true) => IsolationLevel::Full,
            (false, false) => IsolationLevel::Partial,
        };
        let schema_version = RECEIPT_SCHEMA.to_owned();
        Self {
            schema_version,
            requested,
            network,
            level,
            reached,
            missing,
            resources: ResourceLevel::None,
        }
    }

    /// Sets what limited memory and processes.
    pub(crate) fn with(self, resources: ResourceLevel) -> Self {
        Self { resources, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(layer: Layer) -> MissingLayer {
        MissingLayer {
            layer,
            reason: "no such thing here".to_owned(),
        }
    }

    fn reached(layer: Layer) -> ActiveLayer {
        ActiveLayer {
            layer,
            detail: "tried".to_owned(),
        }
    }

    #[test]
    fn missing_layer_refuses_only_when_sandbox_is_required() {
        let all: Vec<_> = Layer::ALL
            .into_iter()
            .filter(|layer| *layer != Layer::Landlock)
            .map(reached)
            .collect();
        let layers = Layers::from_trial(&all, &[missing(Layer::Landlock)]);
        assert_eq!(layers.state(Layer::Landlock), LayerState::Missing);
        assert_eq!(layers.state(Layer::Seccomp), LayerState::Available);
        assert!(!layers.verdict(Strength::Required).passes());
        assert!(layers.verdict(Strength::BestEffort).passes());
        assert_eq!(layers.verdict(Strength::BestEffort).findings().len(), 1);
        assert_eq!(
            layers.verdict(Strength::Off).findings()[0].code.as_str(),
            "sandbox-off"
        );
    }

    #[test]
    fn unreported_layer_is_missing() {
        let layers = Layers::from_trial(&[], &[]);
        assert_eq!(layers.missing().len(), Layer::ALL.len());
    }

    #[test]
    fn receipt_with_missing_layer_is_not_full() {
        let level = |yes: Vec<_>, no: Vec<_>| {
            IsolationReceipt::new(RequestedConfinement::BestEffort, Network::None, yes, no).level
        };
        assert_eq!(
            level(vec![reached(Layer::Seccomp)], vec![]),
            IsolationLevel::Full
        );
        assert_eq!(
            level(vec![reached(Layer::Seccomp)], vec![missing(Layer::Masks)]),
            IsolationLevel::Partial
        );
        assert_eq!(level(vec![], vec![]), IsolationLevel::None);
    }
}
