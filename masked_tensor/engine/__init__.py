"""Carries tensors between torch and the table: no op by name, no arithmetic."""
