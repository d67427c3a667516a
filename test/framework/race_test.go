//go:build race

package framework_test

// raceDetector makes everything several times slower; the largest tests are smaller with it.
const raceDetector = true
