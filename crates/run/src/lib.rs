//! The governed change: contracts, roles, states, land.
