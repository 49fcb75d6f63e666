package server

import (
	"context"
	"time"
)

// What tests in package server_test look at.

// AllEndpoints returns the server's endpoints.
func (s *Server) AllEndpoints() []Endpoint { return s.endpoints }

// UnknownTypes returns the types for which the OpenAPI document has no schema.
func (s *Server) UnknownTypes() []string {
	_, unknown := s.document().Whole()
	return unknown
}

// HeldBodies returns the bytes that bodies of requests hold, and their limit.
func (s *Server) HeldBodies() (held, limit int64) { return s.memory.Held(), s.memory.Total() }

// StopModel unloads a model as soon as it is idle.
func (s *Server) StopModel(name string) { s.pool.Stop(name) }

// IsStopping reports whether the server stops.
func (s *Server) IsStopping() bool { return s.stopping.Load() }

// WeightBytes returns the bytes of a model that this machine loads.
func (s *Server) WeightBytes(m *Model) int64 { return s.memoryBudget(m).weights }

// HoldPrompts takes all memory for prompts, and reports whether it was free.
func (s *Server) HoldPrompts() (release func(), free bool) {
	if s.prompts.Held() > 0 {
		return nil, false
	}
	release, err := s.prompts.Take(context.Background(), s.prompts.Total())
	return release, err == nil
}

// WaitingPrompts returns how many requests wait for memory for their prompts.
func (s *Server) WaitingPrompts() int { return s.prompts.Waiting() }

// SetPromptWait sets how long requests wait for memory for their prompts.
func (s *Server) SetPromptWait(d time.Duration) { s.prompts = promptMemory(times{memory: d}) }

// SetMemoryWait sets how long requests wait for memory for their bodies and answers. Clients that neither send nor read
// are cut after clientIdle.
func (s *Server) SetMemoryWait(d, clientIdle time.Duration) {
	s.memory = requestMemory(s.opts.MaxBody, times{memory: d, clientIdle: clientIdle})
}

// SetSilence sets the time without a message of a stream after which a keep-alive is sent.
func (s *Server) SetSilence(d time.Duration) { s.times.silent = d }
