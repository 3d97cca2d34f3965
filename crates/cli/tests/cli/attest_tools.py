"""Verifies the statements of a commit with libraries that are not Crucible's. Ends with 0 if all are valid.

usage: attest_tools.py BUNDLES PUBLIC_KEY COMMIT

securesystemslib reads the envelope, makes the bytes that are signed and counts the signatures; it is told in a few
lines what an SSH signature is, and cryptography verifies that one. in-toto-attestation reads the statements.
"""

import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from google.protobuf.json_format import Parse
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.predicates.vsa.v1 import vsa_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import Key


def string(data):
    length = int.from_bytes(data[:4], "big")
    return data[4 : 4 + length], data[4 + length :]


def pack(data):
    return len(data).to_bytes(4, "big") + data


class SshKey(Key):
    """An Ed25519 key that signs as `ssh-keygen -Y sign -n crucible-attestation` does."""

    def __init__(self, line):
        blob = base64.b64decode(line.split()[1])
        digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
        super().__init__(f"SHA256:{digest}", "ssh", "sshsig", {"public": line})
        self.blob = blob
        self.public = load_ssh_public_key(line.encode())
        assert isinstance(self.public, Ed25519PublicKey)

    @classmethod
    def from_dict(cls, keyid, key_dict):
        return cls(key_dict["keyval"]["public"])

    def to_dict(self):
        return self._to_dict()

    def verify_signature(self, signature, data):
        magic, rest = bytes.fromhex(signature.signature)[:6], bytes.fromhex(signature.signature)[6:]
        version, rest = rest[:4], rest[4:]
        key, rest = string(rest)
        namespace, rest = string(rest)
        reserved, rest = string(rest)
        algorithm, rest = string(rest)
        inner, rest = string(rest)
        kind, inner = string(inner)
        raw, end = string(inner)
        expected = (b"SSHSIG", b"\0\0\0\1", self.blob, b"crucible-attestation", b"", b"ssh-ed25519", b"", b"")
        if (magic, version, key, namespace, reserved, kind, end, rest) != expected:
            raise UnverifiedSignatureError("another key or another purpose")
        digest = hashlib.new(algorithm.decode(), data).digest()
        signed = magic + pack(namespace) + pack(reserved) + pack(algorithm) + pack(digest)
        try:
            self.public.verify(raw, signed)
        except InvalidSignature as error:
            raise UnverifiedSignatureError("wrong signature") from error


bundles, key, commit = sys.argv[1:4]
key = SshKey(key)
predicates = []
for line in open(bundles):
    envelope = Envelope.from_dict(json.loads(line)["dsseEnvelope"])
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert list(envelope.verify([key], 1)) == [key.keyid]
    statement = Parse(envelope.payload, statement_pb2.Statement())
    Statement.copy_from_pb(statement).validate()
    assert statement.subject[0].digest["gitCommit"] == commit
    predicates.append(statement.predicate_type)
    predicate = json.loads(envelope.payload)["predicate"]
    # The specification has a list of levels; version 0.9.3 of the library reads one text.
    levels = predicate.pop("verifiedLevels", [])
    predicate = json.dumps(predicate)
    if statement.predicate_type == "https://in-toto.io/attestation/test-result/v0.1":
        assert Parse(predicate, test_result_pb2.TestResult()).result == "PASSED"
    if statement.predicate_type == "https://slsa.dev/verification_summary/v1":
        summary = Parse(predicate, vsa_pb2.VerificationSummary(), ignore_unknown_fields=True)
        assert summary.verification_result == "PASSED" and levels == ["CRUCIBLE_GATES_PASSED"]
assert predicates == [
    "urn:crucible:change:v1",
    "https://in-toto.io/attestation/test-result/v0.1",
    "https://slsa.dev/verification_summary/v1",
], predicates
print("verified", len(predicates))
