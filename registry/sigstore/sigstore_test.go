package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

var (
	subjectOne = digest.FromString("one")
	subjectTwo = digest.FromString("two")
)

// newKey returns a new key of a kind, as two PEM files.
func newKey(t testing.TB, kind string) (private, public []byte) {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ecdsa384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return block(labelPrivate, der), block(labelPublic, pub)
}

func block(label string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: label, Bytes: b})
}

// pair returns a new key of a kind, parsed from its PEM files.
func pair(t testing.TB, kind string) (*PrivateKey, *PublicKey) {
	t.Helper()
	private, public := newKey(t, kind)
	k, err := ReadPrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return k, p
}

func sign(t testing.TB, k *PrivateKey, d digest.Digest) []byte {
	t.Helper()
	b, err := k.Sign(d, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSignAndVerify(t *testing.T) {
	for _, kind := range []string{"ecdsa", "ed25519"} {
		t.Run(kind, func(t *testing.T) {
			private, public := pair(t, kind)
			b := sign(t, private, subjectOne)
			if _, err := public.Verify(b, subjectOne); err != nil {
				t.Error(err)
			}
			if _, err := private.Public().Verify(b, subjectOne); err != nil {
				t.Error(err)
			}
			if again := sign(t, private, subjectOne); !bytes.Equal(b, again) {
				t.Errorf("signing again gives another bundle:\n%s\n%s", b, again)
			}
			if _, err := public.Verify(b, subjectTwo); !errors.Is(err, ErrSubject) {
				t.Errorf("for another digest: %v, want ErrSubject", err)
			}
			_, other := pair(t, kind)
			if _, err := other.Verify(b, subjectOne); !errors.Is(err, ErrOtherKey) {
				t.Errorf("with another key: %v, want ErrOtherKey", err)
			}
		})
	}
}

// TestBundleForm checks the names and values that the specifications of bundle and statement define, which cosign
// reads.
func TestBundleForm(t *testing.T) {
	private, public := pair(t, "ed25519")
	var got struct {
		MediaType            string
		VerificationMaterial map[string]map[string]string
		DSSEEnvelope         struct {
			Payload     []byte
			PayloadType string
			Signatures  []map[string]string
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(sign(t, private, subjectOne), &got); err != nil {
		t.Fatal(err)
	}
	if got.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		t.Errorf("mediaType %q", got.MediaType)
	}
	if hint := got.VerificationMaterial["publicKey"]["hint"]; hint != public.Hint() || len(got.VerificationMaterial) != 1 {
		t.Errorf("verificationMaterial %v, want the hint %s", got.VerificationMaterial, public.Hint())
	}
	if got.DSSEEnvelope.PayloadType != "application/vnd.in-toto+json" || len(got.DSSEEnvelope.Signatures) != 1 {
		t.Errorf("envelope %+v", got.DSSEEnvelope)
	}
	want := `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"` + subjectOne.Encoded() +
		`"}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`
	if payload := string(got.DSSEEnvelope.Payload); payload != want {
		t.Errorf("statement %s\nwant %s", payload, want)
	}
}

// resign returns a bundle with any statement, signed correctly by the key.
func resign(t *testing.T, k *PrivateKey, payloadType, payload string) []byte {
	t.Helper()
	sig, err := k.sign(preAuth(payloadType, []byte(payload)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(bundle{BundleMediaType, material{&publicKeyID{k.public.hint}},
		&envelope{[]byte(payload), payloadType, []signature{{sig}}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerifyRefuses(t *testing.T) {
	private, public := pair(t, "ecdsa")
	other, _ := pair(t, "ecdsa")
	good := sign(t, private, subjectOne)
	statementOf := func(kind, predicate string, subjects ...digest.Digest) string {
		var list []string
		for _, s := range subjects {
			list = append(list, `{"digest":{"sha256":"`+s.Encoded()+`"}}`)
		}
		return `{"_type":"` + kind + `","subject":[` + strings.Join(list, ",") + `],"predicateType":"` + predicate + `"}`
	}
	edit := func(change func(b *bundle)) []byte {
		var b bundle
		if err := json.Unmarshal(good, &b); err != nil {
			t.Fatal(err)
		}
		change(&b)
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrBundle},
		{"not JSON", []byte("bundle"), ErrBundle},
		{"null", []byte("null"), ErrBundle},
		{"cut", good[:len(good)-1], ErrBundle},
		{"text after it", append(bytes.Clone(good), "{}"...), ErrBundle},
		{"too large", append(bytes.Clone(good), make([]byte, MaxBundleSize)...), ErrBundle},
		{"media type", edit(func(b *bundle) { b.MediaType = "application/json" }), ErrBundle},
		{"no media type", edit(func(b *bundle) { b.MediaType = "" }), ErrBundle},
		{"no envelope", edit(func(b *bundle) { b.DSSEEnvelope = nil }), ErrBundle},
		{"no signature", edit(func(b *bundle) { b.DSSEEnvelope.Signatures = nil }), ErrBundle},
		{"two signatures", edit(func(b *bundle) {
			b.DSSEEnvelope.Signatures = append(b.DSSEEnvelope.Signatures, b.DSSEEnvelope.Signatures[0])
		}), ErrBundle},
		{"empty signature", edit(func(b *bundle) { b.DSSEEnvelope.Signatures[0].Sig = nil }), ErrBundle},
		{"a bit of the signature", edit(func(b *bundle) { b.DSSEEnvelope.Signatures[0].Sig[9] ^= 1 }), ErrBundle},
		{"a bit of the payload", edit(func(b *bundle) { b.DSSEEnvelope.Payload[9] ^= 1 }), ErrBundle},
		{"payload exchanged", edit(func(b *bundle) {
			b.DSSEEnvelope.Payload = []byte(statementOf(statementType, PredicateType, subjectTwo))
		}), ErrBundle},
		{"payload type exchanged", edit(func(b *bundle) { b.DSSEEnvelope.PayloadType = "text/plain" }), ErrBundle},
		{"hint of another key", edit(func(b *bundle) {
			b.VerificationMaterial.PublicKey.Hint = other.public.hint
			b.DSSEEnvelope.Signatures[0].Sig[9] ^= 1
		}), ErrOtherKey},
		{"a certificate", edit(func(b *bundle) {
			b.VerificationMaterial.PublicKey = nil
			b.DSSEEnvelope.Signatures[0].Sig[9] ^= 1
		}), ErrOtherKey},
		{"another payload type, signed",
			resign(t, private, "text/plain", statementOf(statementType, PredicateType, subjectOne)), ErrPurpose},
		{"another statement type, signed", resign(t, private, payloadType,
			statementOf("https://in-toto.io/Statement/v0.1", PredicateType, subjectOne)), ErrPurpose},
		{"an attestation, signed", resign(t, private, payloadType,
			statementOf(statementType, "https://slsa.dev/provenance/v1", subjectOne)), ErrPurpose},
		{"not JSON, signed", resign(t, private, payloadType, "statement"), ErrBundle},
		{"no subject, signed", resign(t, private, payloadType, statementOf(statementType, PredicateType)), ErrSubject},
		{"two subjects, signed",
			resign(t, private, payloadType, statementOf(statementType, PredicateType, subjectOne, subjectTwo)), ErrSubject},
		{"digest of another kind, signed", resign(t, private, payloadType,
			`{"_type":"`+statementType+`","subject":[{"digest":{"sha512":"`+subjectOne.Encoded()+`"}}],`+
				`"predicateType":"`+PredicateType+`"}`), ErrSubject},
		{"signed by another key, with this one's hint", func() []byte {
			var b bundle
			if err := json.Unmarshal(sign(t, other, subjectOne), &b); err != nil {
				t.Fatal(err)
			}
			b.VerificationMaterial.PublicKey.Hint = public.hint
			out, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}(), ErrBundle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := public.Verify(tt.b, subjectOne)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 400) {
				t.Errorf("not one short line: %q", err)
			}
		})
	}
	if _, err := public.Verify(good, "sha256:short"); err == nil {
		t.Error("a damaged digest verifies")
	}
}

// TestVerifyIgnoresTheRest: parts of a bundle that are not signed may differ, as cosign and others write them.
func TestVerifyIgnoresTheRest(t *testing.T) {
	private, public := pair(t, "ed25519")
	good := string(sign(t, private, subjectOne))
	for _, b := range []string{
		strings.Replace(good, BundleMediaType, "application/vnd.dev.sigstore.bundle+json;version=0.3", 1),
		strings.Replace(good, `"publicKey":`, `"tlogEntries":[{"logIndex":"1"}],"publicKey":`, 1),
		strings.Replace(good, `"hint":"`+public.Hint()+`"`, `"hint":"a name of their own"`, 1),
		strings.Replace(good, `"sig":`, `"keyid":"","sig":`, 1),
		" " + good + "\n",
	} {
		if b == good {
			t.Fatal("nothing was changed")
		}
		if _, err := public.Verify([]byte(b), subjectOne); err != nil {
			t.Errorf("%v: %s", err, b)
		}
	}
}

// TestVerifyPrehashed verifies Ed25519ph, which cosign uses.
func TestVerifyPrehashed(t *testing.T) {
	private, public := pair(t, "ed25519")
	var b bundle
	if err := json.Unmarshal(sign(t, private, subjectOne), &b); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(preAuth(payloadType, b.DSSEEnvelope.Payload))
	sig, err := private.signer.Sign(nil, sum[:], &ed25519.Options{Hash: crypto.SHA512})
	if err != nil {
		t.Fatal(err)
	}
	b.DSSEEnvelope.Signatures[0].Sig = sig
	out, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := public.Verify(out, subjectOne); err != nil {
		t.Error(err)
	}
}

func FuzzBundle(f *testing.F) {
	private, public := pair(f, "ed25519")
	good := sign(f, private, subjectOne)
	f.Add(good)
	for _, kind := range []string{"ecdsa", "ed25519"} {
		f.Add(must[[]byte](f)(os.ReadFile(filepath.Join("testdata", "cosign-"+kind+".bundle.json"))))
	}
	f.Add([]byte(`{"mediaType":"` + BundleMediaType + `","dsseEnvelope":{"signatures":[{}]}}`))
	f.Add([]byte(`{"mediaType":"` + BundleMediaType +
		`","dsseEnvelope":{"payload":"AA==","signatures":[{"sig":"AA=="}]}}`))
	var made bundle
	if err := json.Unmarshal(good, &made); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := public.Verify(b, subjectOne)
		if err != nil {
			if !errors.Is(err, ErrBundle) && !errors.Is(err, ErrOtherKey) {
				t.Errorf("%v is neither ErrBundle nor ErrOtherKey", err) // the key has signed nothing else
			}
			return
		}
		var got bundle
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("verified and not JSON: %v", err)
		}
		if !bytes.Equal(got.DSSEEnvelope.Payload, made.DSSEEnvelope.Payload) {
			t.Errorf("verified with another payload: %s", got.DSSEEnvelope.Payload)
		}
	})
}
