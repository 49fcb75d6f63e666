package write

import "sync"

// Event reports the progress of a run.
type Event struct {
	Tensors, TotalTensors int   // completed and planned
	Bytes, TotalBytes     int64 // of the sources
	Resumed               int64 // part of Bytes that an interrupted run had completed
}

// Progress adds up a run's progress and reports each step, never concurrently. Its methods may be called concurrently.
type Progress struct {
	mu     sync.Mutex
	event  Event
	report func(Event)
}

// NewProgress returns the progress of a run with the totals of an event. A nil report makes it do nothing.
func NewProgress(total Event, report func(Event)) *Progress {
	return &Progress{event: total, report: report}
}

// Add counts and reports what is done.
func (p *Progress) Add(bytes int64, tensors int) { p.add(bytes, 0, tensors) }

// Resume counts and reports what an interrupted run had done.
func (p *Progress) Resume(bytes int64, tensors int) { p.add(bytes, bytes, tensors) }

func (p *Progress) add(bytes, resumed int64, tensors int) {
	if p.report == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.event.Bytes += bytes
	p.event.Resumed += resumed
	p.event.Tensors += tensors
	p.report(p.event)
}
