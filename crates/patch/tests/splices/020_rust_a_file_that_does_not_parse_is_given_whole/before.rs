fn a( {
