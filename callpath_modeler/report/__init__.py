"""Answers to text: opens no files, decides no colours."""
