"""The translations of the package's ops, by family: functions of a graph and the inputs."""
