package manifest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SecretSize is the number of bytes of a store's secret.
const SecretSize = 32

// errSecretUnfit says that a secret may be known to others or has the wrong size, so that a new one has to replace it.
var errSecretUnfit = errors.New("the secret has to be replaced")

// Secret returns random bytes that only the owner of the store can read: a process that knows them runs as that user.
// The first process that needs them creates the file; processes that do so at once agree. A file that others can read
// or that is damaged is replaced, since its secret may be known. A file of another user is an error.
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	secret, err := s.readSecret()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errSecretUnfit) {
		secret, err = s.makeSecret(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the store's secret: %w", err)
	}
	return secret, nil
}

func (s *Store) readSecret() ([]byte, error) {
	path := s.path(secretFile)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, errSecretUnfit
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	root, err := os.Stat(s.root)
	if err != nil {
		return nil, err
	}
	switch {
	case !ownedHere(info, root):
		return nil, fmt.Errorf("%s belongs to another user", f.Name())
	case othersMay(info.Mode()) || info.Size() != SecretSize:
		return nil, errSecretUnfit
	}
	secret := make([]byte, SecretSize)
	if _, err := io.ReadFull(f, secret); err != nil {
		return nil, err
	}
	return secret, nil
}

// makeSecret writes a new secret, unless another process was faster. The index lock keeps one process from replacing
// the secret of another.
func (s *Store) makeSecret(ctx context.Context) ([]byte, error) {
	unlock, err := s.lockIndex(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	secret, err := s.readSecret()
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errSecretUnfit) {
		return secret, err
	}
	secret = make([]byte, SecretSize)
	rand.Read(secret) // never fails
	return secret, s.replaceFileMode(secretFile, secret, 0o600)
}
