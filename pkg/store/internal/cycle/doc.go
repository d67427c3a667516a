// Package cycle takes up the steps of scheduling cycles: a pod passes the gate, is checked
// against its quotas, gets a node or finds none. What follows from such a step belongs
// here. Steps about plans are in package plans.
//
// It calls all packages below it; see package model for their order.
package cycle
