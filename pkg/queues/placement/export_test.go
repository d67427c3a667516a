package placement

// String returns "none", "soft" or "hard".
func (g Gang) String() string {
	switch g {
	case GangSoft:
		return "soft"
	case GangHard:
		return "hard"
	}
	return "none"
}
