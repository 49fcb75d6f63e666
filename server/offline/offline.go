// Package offline is OpenAI's API for files of requests and for batches, which run them while nobody waits.
//
// Contract:
//   - Files and batches lie in the folder batches/ of the store. They belong to the key that made them: other keys do
//     not find them. Their number and bytes are bounded per key.
//   - One batch runs at a time, in order of creation, at the lowest priority: see package server/batches. Results are
//     written as they come, so that a batch goes on where it was when the server is started again, also by another
//     server of the same store.
//   - What cannot run, such as a line that is no request, is an error of its request. The others go on.
package offline

import (
	"context"
	"reflect"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/openapi"
)

// api is the API of one server.
type api struct {
	core    *server.Server
	most    bounds
	store   *files
	uploads chan struct{} // a slot for each upload in progress
	worker  *worker
}

// bounds are the limits of the API.
type bounds struct {
	file, space, output                  int64 // bytes of an input, of all files of a key, and of an output
	files, requests, batches, unfinished int
}

// New returns the API, and starts to run the batches that are not finished.
func New(core *server.Server) server.API {
	return newAPI(core, bounds{file: limits.BatchFile, space: limits.BatchSpace, output: limits.BatchOutput,
		files: limits.BatchFiles, requests: limits.BatchRequests, batches: limits.Batches,
		unfinished: limits.BatchesWaiting})
}

func newAPI(core *server.Server, b bounds) server.API {
	o := core.Options()
	s := &api{core: core, most: b, uploads: make(chan struct{}, limits.UploadsAtOnce)}
	s.store = &files{root: o.Store.Path("batches"), space: o.Store.Space(), keepFree: o.KeepFree, now: o.Store.Now}
	s.worker = &worker{files: s.store, most: b, log: o.Log, kick: make(chan struct{}, 1),
		cancels: map[string]context.CancelFunc{}}
	s.worker.do = func(ctx context.Context, owner string, q batches.Request) (batches.Response, error) {
		return core.Do(ctx, owner, q)
	}
	core.Go(s.worker.run)
	return server.API{Endpoints: s.endpoints(), Schemas: openapi.Special{}}
}

func (s *api) endpoints() []server.Endpoint {
	return []server.Endpoint{
		{Method: "POST", Path: "/v1/files", Handle: s.upload,
			Operation: openapi.Operation{Summary: "Upload a file of requests", File: true,
				Form:     []string{"purpose", "expires_after[anchor]", "expires_after[seconds]"},
				Response: reflect.TypeFor[fileJSON]()},
		},
		{Method: "GET", Path: "/v1/files", Handle: s.listFiles,
			Operation: openapi.Operation{Summary: "List files: of a purpose, after a file, at most limit, in an order",
				Query: "purpose batch or batch_output", Response: reflect.TypeFor[fileListJSON]()},
			Samples: []server.Sample{{}},
		},
		{Method: "GET", Path: "/v1/files/{id}", Handle: s.getFile,
			Operation: openapi.Operation{Summary: "Describe a file", Response: reflect.TypeFor[fileJSON]()},
		},
		{Method: "GET", Path: "/v1/files/{id}/content", Handle: s.getContent,
			Operation: openapi.Operation{Summary: "Get a file's content", Media: contentType},
		},
		{Method: "DELETE", Path: "/v1/files/{id}", Handle: s.deleteFile,
			Operation: openapi.Operation{Summary: "Delete a file", Response: reflect.TypeFor[deletedJSON]()},
		},
		{Method: "POST", Path: "/v1/batches", Handle: s.createBatch,
			Operation: openapi.Operation{Summary: "Run the requests of a file",
				Request:  reflect.TypeFor[batchRequest](),
				Required: []string{"input_file_id", "endpoint", "completion_window"},
				Response: reflect.TypeFor[batchJSON]()},
		},
		{Method: "GET", Path: "/v1/batches", Handle: s.listBatches,
			Operation: openapi.Operation{Summary: "List batches, the newest first: after a batch, at most limit",
				Query: "after id of a batch", Response: reflect.TypeFor[batchListJSON]()},
			Samples: []server.Sample{{}},
		},
		{Method: "GET", Path: "/v1/batches/{id}", Handle: s.getBatch,
			Operation: openapi.Operation{Summary: "Describe a batch", Response: reflect.TypeFor[batchJSON]()},
		},
		{Method: "POST", Path: "/v1/batches/{id}/cancel", Handle: s.cancelBatch,
			Operation: openapi.Operation{Summary: "Cancel a batch; finished requests keep their results",
				Response: reflect.TypeFor[batchJSON]()},
		},
	}
}

// contentType is the media type of files.
const contentType = "application/jsonl"
