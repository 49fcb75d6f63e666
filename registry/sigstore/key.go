package sigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
)

// PublicKey verifies signatures.
type PublicKey struct {
	key  crypto.PublicKey // *ecdsa.PublicKey on P-256, or ed25519.PublicKey
	hint string
}

// PrivateKey makes signatures.
type PrivateKey struct {
	signer crypto.Signer
	public *PublicKey
}

// Public returns the public key, which verifies this key's signatures.
func (k *PrivateKey) Public() *PublicKey { return k.public }

// Hint returns the key's identifier in bundles, as cosign writes it: base64 of the SHA-256 digest of the key in PKIX
// form.
func (k *PublicKey) Hint() string { return k.hint }

// Kind returns "ECDSA P-256" or "Ed25519".
func (k *PublicKey) Kind() string {
	if _, ok := k.key.(ed25519.PublicKey); ok {
		return "Ed25519"
	}
	return "ECDSA P-256"
}

// PEM labels (RFC 7468, and go-securesystemslib for keys that cosign encrypts), and advice in errors.
const (
	labelPublic          = "PUBLIC KEY"
	labelPrivate         = "PRIVATE KEY"
	labelEC              = "EC PRIVATE KEY"
	labelECParameters    = "EC PARAMETERS"
	labelSigstore        = "ENCRYPTED SIGSTORE PRIVATE KEY"
	labelCosign          = "ENCRYPTED COSIGN PRIVATE KEY"
	labelEncryptedPKCS8  = "ENCRYPTED PRIVATE KEY"
	labelOpenSSH         = "OPENSSH PRIVATE KEY"
	labelCertificate     = "CERTIFICATE"
	labelRSAPrivate      = "RSA PRIVATE KEY"
	headerProcType       = "Proc-Type" // RFC 1421: the block is encrypted
	maxKeyFile           = 64 << 10
	commandToPublic      = "`openssl pkey -in KEY -pubout` prints its public key"
	commandToPlain       = "`openssl pkcs8 -topk8 -nocrypt -in KEY` decrypts it, `cosign import-key-pair` converts it"
	supportedKeys        = "ECDSA P-256 and Ed25519 keys are supported"
	commandFromOtherKind = "`openssl genpkey -algorithm ed25519` makes one"
)

// ReadPublicKey parses the contents of a PEM file with a public key (PKIX, "PUBLIC KEY"). Errors are [ErrKey].
func ReadPublicKey(file []byte) (*PublicKey, error) {
	block, err := firstBlock(file)
	if err != nil {
		return nil, err
	}
	switch block.Type {
	case labelPublic:
	case labelPrivate, labelEC, labelSigstore, labelCosign, labelEncryptedPKCS8, labelOpenSSH, labelRSAPrivate:
		return nil, fmt.Errorf("it holds a private key where a public one is needed, %s: %w", commandToPublic, ErrKey)
	case labelCertificate:
		return nil, fmt.Errorf("it holds a certificate, `openssl x509 -in FILE -noout -pubkey` prints its key: %w", ErrKey)
	default:
		return nil, fmt.Errorf("it holds a %q block, not a %q: %w", excerpt(block.Type), labelPublic, ErrKey)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, ErrKey)
	}
	return newPublicKey(key)
}

// ReadPrivateKey parses the contents of a PEM file with a private key: PKCS #8 or SEC 1 without a password, or
// encrypted by cosign. password is called only for encrypted keys; nil means the empty password. Errors are [ErrKey],
// [ErrPassword], or the error of password.
func ReadPrivateKey(file []byte, password func() ([]byte, error)) (*PrivateKey, error) {
	block, err := firstBlock(file)
	if err != nil {
		return nil, err
	}
	if block.Headers[headerProcType] != "" {
		return nil, fmt.Errorf("it is encrypted in an unsupported form, %s: %w", commandToPlain, ErrKey)
	}
	var key any
	switch block.Type {
	case labelPrivate:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case labelEC:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case labelSigstore, labelCosign:
		key, err = readEncrypted(block.Bytes, password)
		if err != nil {
			return nil, err
		}
	case labelEncryptedPKCS8:
		return nil, fmt.Errorf("it is encrypted in an unsupported form, %s: %w", commandToPlain, ErrKey)
	case labelPublic:
		return nil, fmt.Errorf("it holds a public key, and signing needs the private one: %w", ErrKey)
	case labelOpenSSH:
		return nil, fmt.Errorf("it holds an SSH key, `ssh-keygen -p -m PKCS8 -f COPY` converts a copy: %w", ErrKey)
	default:
		return nil, fmt.Errorf("it holds a %q block, not a %q: %w", excerpt(block.Type), labelPrivate, ErrKey)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, ErrKey)
	}
	return newPrivateKey(key)
}

// firstBlock returns the first PEM block that can hold a key. `openssl ecparam` writes the curve's parameters before
// it.
func firstBlock(file []byte) (*pem.Block, error) {
	if len(file) > maxKeyFile {
		return nil, fmt.Errorf("%d bytes are too many for a key: %w", len(file), ErrKey)
	}
	for {
		block, rest := pem.Decode(file)
		if block == nil {
			return nil, fmt.Errorf("it is not in PEM form: %w", ErrKey)
		}
		if block.Type != labelECParameters {
			return block, nil
		}
		file = rest
	}
}

func newPrivateKey(key any) (*PrivateKey, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T, %s: %w", key, supportedKeys, ErrKey)
	}
	public, err := newPublicKey(signer.Public())
	if err != nil {
		return nil, err
	}
	return &PrivateKey{signer, public}, nil
}

func newPublicKey(key crypto.PublicKey) (*PublicKey, error) {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, unsupported("an ECDSA key on " + k.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		return nil, unsupported("an RSA key")
	default:
		return nil, unsupported(fmt.Sprintf("a key of type %T", key))
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, ErrKey)
	}
	sum := sha256.Sum256(der)
	return &PublicKey{key, base64.StdEncoding.EncodeToString(sum[:])}, nil
}

func unsupported(what string) error {
	return fmt.Errorf("it holds %s, %s, %s: %w", what, supportedKeys, commandFromOtherKind, ErrKey)
}
