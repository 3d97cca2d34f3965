fn other() {}
