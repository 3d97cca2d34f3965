// Verifies the statements of a commit with Sigstore's library. Ends with 0 if all are valid.
//
// usage: node attest_tools.mjs MODULES BUNDLES PUBLIC_KEY COMMIT
//
// @sigstore/bundle reads and validates the bundle. @sigstore/verify finds the key by its hint, makes the bytes that are
// signed, and calls the signature. The library knows no SSH signatures, so a few lines say what one is.

import assert from "node:assert/strict";
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, bundles, line, commit] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { bundleFromJSON } = require("@sigstore/bundle");
const { Verifier, toSignedEntity } = require("@sigstore/verify");

function* strings(bytes) {
  while (bytes.length > 0) {
    const end = 4 + bytes.readUInt32BE(0);
    assert(end <= bytes.length);
    yield bytes.subarray(4, end);
    bytes = bytes.subarray(end);
  }
}

const pack = (bytes) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};

const blob = Buffer.from(line.split(" ")[1], "base64");
const [kind, point] = strings(blob);
assert.equal(kind.toString(), "ssh-ed25519");
const hint = `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
const prefix = Buffer.from("302a300506032b6570032100", "hex");
const publicKey = createPublicKey({ key: Buffer.concat([prefix, point]), format: "der", type: "spki" });

/** The signature of an envelope, as `ssh-keygen -Y sign -n crucible-attestation` makes it. */
function overSsh(content) {
  return {
    signature: content.signature,
    compareDigest: (digest) => content.compareDigest(digest),
    compareSignature: (signature) => content.compareSignature(signature),
    verifySignature(key) {
      const magic = Buffer.from("SSHSIG");
      const head = Buffer.concat([magic, Buffer.from([0, 0, 0, 1])]);
      if (!content.signature.subarray(0, 10).equals(head)) return false;
      const [signer, namespace, reserved, hash, inner] = strings(content.signature.subarray(10));
      const [algorithm, raw] = strings(inner);
      if (!signer.equals(blob) || namespace.toString() !== "crucible-attestation") return false;
      if (reserved.length !== 0 || algorithm.toString() !== "ssh-ed25519") return false;
      const digest = createHash(hash.toString()).update(content.preAuthEncoding).digest();
      const signed = Buffer.concat([magic, ...[namespace, reserved, hash, digest].map(pack)]);
      return verify(null, signed, key, raw);
    },
  };
}

const trusted = {
  certificateAuthorities: [],
  timestampAuthorities: [],
  tlogs: [],
  ctlogs: [],
  publicKey(wanted) {
    assert.equal(wanted, hint);
    return { publicKey, validFor: () => true };
  },
};
// There is no transparency log and no timestamp authority.
const verifier = new Verifier(trusted, { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 });
const lines = readFileSync(bundles, "utf8").trimEnd().split("\n");
for (const text of lines) {
  const bundle = bundleFromJSON(JSON.parse(text));
  const entity = toSignedEntity(bundle);
  verifier.verify({ ...entity, signature: overSsh(entity.signature) });
  const envelope = bundle.content.dsseEnvelope;
  assert.equal(envelope.payloadType, "application/vnd.in-toto+json");
  const statement = JSON.parse(envelope.payload.toString());
  assert.equal(statement.subject[0].digest.gitCommit, commit);
}
assert.equal(lines.length, 3);
console.log("verified", lines.length);
