package runtime

import (
	"context"

	"github.com/ingotml/ingot/cache/prefix"
)

// Usage is a model's current use of memory, and its activity.
type Usage struct {
	Weights    int64             `json:"weights"`     // bytes, including those in mapped files
	State      int64             `json:"state"`       // bytes of running requests' state
	StateLimit int64             `json:"state_limit"` // bound of State; 0: none
	Running    int               `json:"running"`     // requests in the batch
	Waiting    int               `json:"waiting"`     // requests in the queue
	Steps      int64             `json:"steps"`       // since the model was loaded
	Shares     int64             `json:"shares"`      // sum of the batch sizes of these steps; Shares/Steps is the mean
	Goroutines int               `json:"goroutines"`  // of the model's process
	Prefix     *prefix.Stats     `json:"prefix,omitempty"`
	Disk       *prefix.DiskStats `json:"disk,omitempty"`
	Ranks      []RankUsage       `json:"ranks,omitempty"` // that divide the model, if several do
	Ring       *RingUsage        `json:"ring,omitempty"`  // if the ranks are workers
}

// RingUsage is what rank 0 has exchanged with its neighbours in the ring of the engine, in bytes.
type RingUsage struct {
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// RankUsage is what a rank has of a model that is divided over several.
type RankUsage struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host"`
	Weights  int64  `json:"weights"`  // bytes
	Commands int64  `json:"commands"` // bytes that rank 0 has sent to it over the control connection
}

// Reporter is an [Engine] that reports its usage.
type Reporter interface {
	Engine
	Usage(ctx context.Context) (Usage, error)
}
