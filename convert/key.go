package convert

import (
	"crypto/sha256"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
)

// keyVersion changes whenever equal plans would produce different bytes than before.
const keyVersion = "ingot create 1"

// key identifies the run for resuming: a hash of the plan and of the identity of its sources. The location of the
// folder is not part of it.
func (p *Plan) key() (digest.Digest, error) {
	type file struct {
		Name   string
		Size   int64
		Time   time.Time
		Header [sha256.Size]byte
	}
	type content struct {
		Name string
		Sum  [sha256.Size]byte
	}
	var identity struct {
		Version string
		Plan    *Plan
		Files   []content
		Sources []file
	}
	identity.Version = keyVersion
	plain := *p
	plain.Files = slices.Clone(p.Files)
	for i := range plain.Files {
		plain.Files[i].Source = ""
		identity.Files = append(identity.Files, content{p.Files[i].Name, sha256.Sum256(p.Files[i].Data)})
	}
	plain.Warnings = nil // they may name paths
	identity.Plan = &plain
	seen := map[string]bool{}
	for _, t := range p.Tensors {
		for _, s := range t.Sources {
			for _, w := range s.weight.files() {
				if w.store != nil || seen[w.path] {
					continue
				}
				seen[w.path] = true
				header, err := json.Marshal(w.from.File.Header())
				if err != nil {
					return "", err
				}
				identity.Sources = append(identity.Sources,
					file{filepath.Base(w.path), w.size, w.mtime.UTC(), sha256.Sum256(header)})
			}
		}
	}
	b, err := marshal(identity)
	if err != nil {
		return "", err
	}
	return digest.FromBytes(b), nil
}
