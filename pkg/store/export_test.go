package store

import "github.com/paddock-scheduler/paddock/pkg/store/internal/model"

// Model returns the state of a store. Tests compare with it what readers get, and plant faults
// in it.
func (s *Store) Model() *model.Model { return s.model }
