//! An observer of a backend is notified of each attempt and of its end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crucible_llm::{
    BudgetLimits, CallBudget, CallObserver, ClientOptions, LlmBackend, LlmInvocation, ModelClient,
    Recording, RetryPolicy,
};

use crate::raw_server::RawServer;
use crate::support::{Scripted, answer, ask, client, gateway, outage};

/// The notifications.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl CallObserver for Told {
    fn call_started(&self, phase_id: &str) {
        self.0.lock().unwrap().push(format!("asked {phase_id}"));
    }

    fn call_ended(&self, phase_id: &str) {
        self.0.lock().unwrap().push(format!("answered {phase_id}"));
    }
}

#[tokio::test(start_paused = true)]
async fn observer_sees_start_and_end_of_attempts() {
    let observer = Arc::new(Told::default());
    let backend = Scripted::new([Err(outage(503)), Ok(answer("at last"))])
        .backend()
        .watched(observer.clone());
    client(backend, Recording::Off, RetryPolicy::PHASES)
        .call(ask("x"))
        .await
        .unwrap();
    assert_eq!(
        observer.all(),
        [
            "asked patch",
            "answered patch",
            "asked patch",
            "answered patch"
        ]
    );
}

#[tokio::test]
async fn abandoned_attempt_is_reported_ended() {
    let observer = Arc::new(Told::default());
    let server = RawServer::mute();
    let backend = gateway(&server.base_url(), None).watched(observer.clone());
    tokio::select! {
        _ = backend.invoke(ask("x")) => panic!("it must not end by itself"),
        () = tokio::time::sleep(Duration::from_millis(50)) => {}
    }
    assert_eq!(observer.all(), ["asked patch", "answered patch"]);
}

#[tokio::test]
async fn budget_refusal_is_not_an_attempt() {
    let observer = Arc::new(Told::default());
    let backend = Scripted::new([]).backend().watched(observer.clone());
    let options = ClientOptions::new(CallBudget::new(BudgetLimits::calls(0)));
    assert!(
        ModelClient::new(backend, options)
            .call(ask("x"))
            .await
            .is_err()
    );
    assert_eq!(observer.all(), Vec::<String>::new());
}

#[tokio::test]
async fn cloned_backend_keeps_models_and_observer() {
    let observer = Arc::new(Told::default());
    let models = std::collections::BTreeMap::from([("patch".to_owned(), "strong".to_owned())]);
    let backend = Scripted::new([])
        .backend()
        .with_phase_models(models.clone())
        .watched(observer.clone());
    assert_eq!(backend.phase_models(), &models);
    let clone = backend.clone();
    for (backend, phase) in [(&backend, "one"), (&clone, "two")] {
        backend
            .invoke(LlmInvocation {
                phase_id: phase.to_owned(),
                ..ask("x")
            })
            .await
            .unwrap();
    }
    assert_eq!(
        observer.all(),
        ["asked one", "answered one", "asked two", "answered two"]
    );
}
