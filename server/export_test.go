package server

import "time"

// What tests in package server_test look at.

// AllEndpoints returns the server's endpoints.
func (s *Server) AllEndpoints() []Endpoint { return s.endpoints }

// UnknownTypes returns the types for which the OpenAPI document has no schema.
func (s *Server) UnknownTypes() []string {
	_, unknown := s.document().Whole()
	return unknown
}

// HeldBodies returns the bytes that bodies of requests hold, and their limit.
func (s *Server) HeldBodies() (held, limit int64) { return s.bodies.Reserved(), s.bodies.Limit() }

// StopModel unloads a model as soon as it is idle.
func (s *Server) StopModel(name string) { s.pool.Stop(name) }

// IsStopping reports whether the server stops.
func (s *Server) IsStopping() bool { return s.stopping.Load() }

// WeightBytes returns the bytes of a model that this machine loads.
func (s *Server) WeightBytes(m *Model) int64 { return s.memoryBudget(m).weights }

// HoldPrompts takes all memory for prompts, and reports whether it was free.
func (s *Server) HoldPrompts() bool { return s.prompts.memory.TryAcquire(s.prompts.total) }

// ReleasePrompts returns what HoldPrompts took.
func (s *Server) ReleasePrompts() { s.prompts.memory.Release(s.prompts.total) }

// WaitingPrompts returns how many requests wait for memory for their prompts.
func (s *Server) WaitingPrompts() int64 { return s.prompts.waiting.Load() }

// PromptLimits returns the memory for prompts, and how long requests wait for it.
func (s *Server) PromptLimits() (total int64, wait *time.Duration) {
	return s.prompts.total, &s.prompts.wait
}

// SetSilence sets the time without a message of a stream after which a keep-alive is sent.
func (s *Server) SetSilence(d time.Duration) { s.times.silent = d }
