package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/opencontainers/go-digest"
)

// Purposes of connections.
const (
	purposeRank  = "rank"
	purposeStore = "store"
	purposeRing  = "ring"
	purposeBack  = "back"
	purposeAbout = "about"
)

// rankDetail is the detail of a connection "rank": what a worker runs.
type rankDetail struct {
	Group string        `json:"group"` // random
	Rank  int           `json:"rank"`
	Size  int           `json:"size"`
	Next  string        `json:"next,omitempty"` // address of the next rank's worker; empty: the next rank is 0
	Name  string        `json:"name"`           // of the model, for messages
	Image digest.Digest `json:"image"`
	// Stages are the layers of the ranks of a pipeline; nil: the ranks have parts of tensors.
	Stages shard.Stages `json:"stages,omitempty"`
}

var groupName = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (d rankDetail) check() error {
	switch {
	case !groupName.MatchString(d.Group):
		return errors.New("the group has no name")
	case d.Size < 2 || d.Size > limits.Ranks || d.Rank < 1 || d.Rank >= d.Size:
		return fmt.Errorf("rank %d of %d; a group has at most %d ranks", d.Rank, d.Size, limits.Ranks)
	case (d.Next == "") != (d.Rank == d.Size-1):
		return errors.New("the ring of the group is not closed")
	case !manifest.ValidDigest(d.Image):
		return errors.New("the model's digest is invalid")
	case d.Stages != nil && len(d.Stages) != d.Size:
		return fmt.Errorf("layers for %d ranks of %d", len(d.Stages), d.Size)
	}
	return nil
}

// groupDetail is the detail of the other connections of a group.
type groupDetail struct {
	Group string `json:"group"`
}

// report is what a worker sends on a connection "rank" before the commands: every reportInterval, and when something
// changes.
type report struct {
	Fetch   bool   `json:"fetch,omitempty"` // the worker needs connections to rank 0's store
	Fetched int64  `json:"fetched,omitempty"`
	Total   int64  `json:"total,omitempty"`
	Ready   *About `json:"ready,omitempty"` // the last report: the parts are there
	Failed  string `json:"failed,omitempty"`
}

// About is what a worker says of its machine.
type About struct {
	Host    string `json:"host"`
	Memory  int64  `json:"memory"` // bytes that models may use
	Cores   int    `json:"cores"`
	Program string `json:"program"`
	Engine  string `json:"engine"`
}

// order is what rank 0 sends on a connection "rank" before the commands: every reportInterval, and to start.
type order struct {
	Start bool `json:"start,omitempty"`
}

const reportInterval = time.Second

func detail(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the details have strings and numbers
	}
	return b
}
