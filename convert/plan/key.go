package plan

import (
	"crypto/sha256"
	"slices"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// keyVersion changes whenever equal plans would produce different bytes than before.
const keyVersion = "ingot create 1"

// Key identifies the run for resuming: a hash of the plan and of the identity of its sources. The location of the
// folder is not part of it.
func (p *Plan) Key() (digest.Digest, error) {
	type content struct {
		Name string
		Sum  [sha256.Size]byte
	}
	var identity struct {
		Version string
		Plan    *Plan
		Files   []content
		Sources []source.Identity
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
			for _, part := range s.Tensor.Parts() {
				if seen[part.Path] {
					continue
				}
				seen[part.Path] = true
				id, ok, err := part.Identity()
				if err != nil {
					return "", err
				}
				if ok {
					identity.Sources = append(identity.Sources, id)
				}
			}
		}
	}
	b, err := manifest.Marshal(identity)
	if err != nil {
		return "", err
	}
	return digest.FromBytes(b), nil
}
